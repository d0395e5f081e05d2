// A certified OpenID provider that gives tokens to programs (client credentials), as JWT, for the audience that is asked for.
import fs from "node:fs";
import Provider from "oidc-provider";

const { issuer, port, clients, jwks } = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const provider = new Provider(issuer, {
  clients: clients.map(([id, secret]) => ({
    client_id: id,
    client_secret: secret,
    grant_types: ["client_credentials"],
    redirect_uris: [],
    response_types: [],
  })),
  jwks,
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
provider.listen(port, "127.0.0.1", () => console.log("listening"));
