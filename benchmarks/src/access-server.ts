import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { alwaysAllow, authorizerChain, openAudit, RbacAuthorizer, RbacIndex, RbacInformers } from '@keelson/access';
import type { UserInfo } from '@keelson/core';
import { noMetrics, silentLogger, systemClock } from '@keelson/core/runtime';
import { createHttpApi, serverOptions } from '@keelson/http-koa';
import { ConfigMap } from '@keelson/kinds';
import { createControlPlane } from 'keelson';
import { bindings, reader, readObject, roles } from './access-objects.ts';

/**
 * A plane whose requests are all those of one user: `access-server MODE ROLES BINDINGS [POLICY LOG]`. In the mode
 * `roles` four of the bindings apply to the user, in the mode `allow` every request is allowed. A plain HTTP server of
 * the command line has administrators only, whose requests do not wait for others.
 */
const [mode, roleWord, bindingWord, policyFile, path] = process.argv.slice(2);
const [roleCount, bindingCount] = [Number(roleWord), Number(bindingWord)];
const context = { clock: systemClock, logger: silentLogger };
const user: UserInfo = {
  name: reader,
  groups: ['readers', 'system:authenticated'],
};

const index = new RbacIndex();
const authorizer = mode === 'roles' ? authorizerChain([new RbacAuthorizer(index)]) : alwaysAllow;
const plane = await createControlPlane({ authorizer, controllers: false });
const { api } = plane;
await api.resource(ConfigMap).namespace('default').create(readObject);
for (const { kind, object } of [...roles(roleCount), ...bindings(bindingCount, roleCount)]) {
  const client = api.resource(kind);
  await (kind.scope === 'Namespaced' ? client.namespace('default') : client).create(object);
}
await new RbacInformers({ client: api, index, ...context }).start();

const audit =
  policyFile === undefined || path === undefined
    ? undefined
    : await openAudit({ policyFile, log: { path } }, { ...context, metrics: noMetrics });
const http = createHttpApi({
  ...context,
  metrics: noMetrics,
  registry: plane.registry,
  version: { major: '1', minor: '34', gitVersion: 'v1.34.0' },
  authenticate: () => user,
  authorize: authorizer.authorize,
  ...(audit === undefined ? {} : { auditor: audit.auditor }),
});
const server = createServer(serverOptions, http.listener);
server.listen(0, '127.0.0.1', () => process.stdout.write(`ready ${(server.address() as AddressInfo).port}\n`));
process.once('SIGTERM', () => process.exit(0));
