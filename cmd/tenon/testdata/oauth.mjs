// An MCP server that wants a login, and the authorization server for it, both of the TypeScript library: it checks
// clients, redirect addresses, PKCE and forms; only the tokens are made and kept here. Access tokens are good for no
// longer than a client's margin, so that every command refreshes; refresh tokens are good once.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import express from 'express';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { mcpAuthRouter, getOAuthProtectedResourceMetadataUrl } from '@modelcontextprotocol/sdk/server/auth/router.js';
import { requireBearerAuth } from '@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js';
import { AccessDeniedError, InvalidGrantError, InvalidTokenError } from '@modelcontextprotocol/sdk/server/auth/errors.js';

const clients = new Map(), codes = new Map(), access = new Map(), refresh = new Map();
let mcpURL, deny = false;

function issue(client, scopes, resource) {
  if (resource?.href !== mcpURL.href) throw new InvalidGrantError(`the resource is ${resource}`);
  const token = { clientId: client.client_id, scopes, expiresAt: Math.floor(Date.now() / 1000) + 30, resource };
  const names = { access_token: randomUUID(), refresh_token: randomUUID() };
  access.set(names.access_token, token);
  refresh.set(names.refresh_token, token);
  return { ...names, token_type: 'Bearer', expires_in: 30, scope: scopes.join(' ') };
}

const provider = {
  clientsStore: {
    getClient: id => clients.get(id),
    registerClient: client => (clients.set(client.client_id, client), client),
  },
  async authorize(client, params, res) {
    if (deny) throw new AccessDeniedError('The person said no');
    const code = randomUUID(), to = new URL(params.redirectUri);
    codes.set(code, { client, params });
    to.search = new URLSearchParams({ code, state: params.state });
    res.redirect(to.href);
  },
  challengeForAuthorizationCode: async (client, code) => codes.get(code).params.codeChallenge,
  async exchangeAuthorizationCode(client, code, verifier, redirect, resource) {
    const { params, client: owner } = codes.get(code);
    codes.delete(code);
    if (owner.client_id !== client.client_id || params.redirectUri !== redirect) throw new InvalidGrantError('of another client');
    return issue(client, params.scopes ?? [], resource);
  },
  async exchangeRefreshToken(client, name, scopes, resource) {
    const token = refresh.get(name);
    refresh.delete(name);
    if (token?.clientId !== client.client_id) throw new InvalidGrantError('this refresh token is not good');
    console.log('refreshed');
    return issue(client, token.scopes, resource);
  },
  async revokeToken(client, { token }) {
    if (refresh.delete(token)) console.log('revoked');
  },
  async verifyAccessToken(name) {
    const token = access.get(name);
    if (!token) throw new InvalidTokenError('this access token is not good');
    return { token: name, ...token };
  },
};

const http = createServer().listen(0, '127.0.0.1', () => {
  const issuerUrl = new URL(`http://127.0.0.1:${http.address().port}`);
  mcpURL = new URL('/mcp', issuerUrl);
  const app = express();
  app.use(mcpAuthRouter({ provider, issuerUrl, resourceServerUrl: mcpURL, scopesSupported: ['greet'] }));
  app.post('/deny', (req, res) => { deny = true; res.end(); });
  app.post('/forget', (req, res) => { access.clear(); refresh.clear(); res.end(); });
  const bearer = requireBearerAuth({ verifier: provider, requiredScopes: ['greet'], resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(mcpURL) });
  app.all('/mcp', bearer, express.json(), async (req, res) => {
    const server = new McpServer({ name: 'guarded', version: '1.0.0' });
    server.registerTool('greet', { description: 'Say hello' }, async () => ({ content: [{ type: 'text', text: 'hello, whoever you are' }] }));
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    res.on('close', () => server.close());
    await server.connect(transport);
    await transport.handleRequest(req, res, req.body);
  });
  http.on('request', app);
  console.log(`listening on ${mcpURL}`);
});
