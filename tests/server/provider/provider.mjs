// A certified OpenID provider. To programs it gives tokens (client credentials), as JWT, for the audience that is asked for; people it signs
// in without asking, under the name in the settings (authorization code with PKCE).
import fs from "node:fs";
import Provider from "oidc-provider";

const { issuer, port, clients, jwks, person, redirects } = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const programs = clients.map(([id, secret]) => ({
  client_id: id,
  client_secret: secret,
  grant_types: ["client_credentials"],
  redirect_uris: [],
  response_types: [],
}));
const pages = {
  client_id: "console",
  token_endpoint_auth_method: "none",
  grant_types: ["authorization_code"],
  redirect_uris: redirects,
  response_types: ["code"],
};
const provider = new Provider(issuer, {
  clients: [...programs, pages],
  jwks,
  findAccount: (context, id) => ({ accountId: id, claims: async () => ({ sub: id, groups: ["staff"] }) }),
  claims: { openid: ["sub", "groups"] },
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  interactions: { url: (context, interaction) => `/interaction/${interaction.uid}` },
  loadExistingGrant: async (context) => {
    const { client, session, provider: own } = context.oidc;
    const grant = new own.Grant({ clientId: client.clientId, accountId: session.accountId });
    grant.addOIDCScope("openid");
    await grant.save();
    return grant;
  },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (context, resource) => ({
        scope: "",
        audience: resource.replace("urn:", ""),
        accessTokenFormat: "jwt",
        accessTokenTTL: 600,
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
});
provider.use(async (context, next) => {
  if (!context.path.startsWith("/interaction/")) return next();
  await provider.interactionFinished(context.req, context.res, { login: { accountId: person } });
  context.respond = false;
});
provider.listen(port, "127.0.0.1", () => console.log("listening"));
