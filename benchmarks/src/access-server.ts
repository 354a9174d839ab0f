import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { authorizerChain, openAudit, RbacAuthorizer, RbacIndex, RbacInformers } from '@keelson/access';
import type { UserInfo } from '@keelson/core';
import { noMetrics, silentLogger, systemClock } from '@keelson/core/runtime';
import { createHttpApi, serverOptions } from '@keelson/http-koa';
import { ClusterRole, ClusterRoleBinding, ConfigMap, RoleBinding } from '@keelson/kinds';
import { createControlPlane } from 'keelson';

/**
 * A plane whose requests are all those of one user: `access-server ROLES BINDINGS [POLICY LOG]`. With roles it is a
 * user to whom four of the bindings apply, without them an administrator. A plain HTTP server of the command line has
 * administrators only, and TLS would be most of the cost of a request.
 */
const [roles = 0, bindings = 0] = process.argv.slice(2, 4).map(Number);
const [policyFile, path] = process.argv.slice(4);
const context = { clock: systemClock, logger: silentLogger };
const user: UserInfo = {
  name: 'reader',
  groups: roles > 0 ? ['readers', 'system:authenticated'] : ['system:masters', 'system:authenticated'],
};

const index = new RbacIndex();
const authorizer = authorizerChain([new RbacAuthorizer(index)]);
const plane = await createControlPlane({ authorizer, controllers: false });
const { api } = plane;
await api
  .resource(ConfigMap)
  .namespace('default')
  .create({ metadata: { name: 'read' }, data: { text: 'x'.repeat(1_000) } });

const apiGroup = 'rbac.authorization.k8s.io';
for (let i = 0; i < roles; i += 1) {
  const rules = [{ apiGroups: [''], resources: ['pods', 'configmaps', `things${i}`], verbs: ['get', 'list', 'watch'] }];
  await api.resource(ClusterRole).create({ metadata: { name: `role-${i}` }, rules });
}
for (let i = 0; i < bindings; i += 1) {
  const isUsers = i % Math.ceil(bindings / 4) === 0;
  const binding = {
    metadata: { name: `binding-${i}` },
    roleRef: { apiGroup, kind: 'ClusterRole', name: `role-${i % roles}` },
    subjects: [{ apiGroup, kind: 'User', name: isUsers ? user.name : `user-${i}` }],
  };
  if (i % 2 === 0) await api.resource(RoleBinding).namespace('default').create(binding);
  else await api.resource(ClusterRoleBinding).create(binding);
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
