"""Identities of callers: API keys, tokens, sessions and the rights they carry."""
