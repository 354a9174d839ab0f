import { writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { parseOptions, resolveConfig, runAgent } from '@keelson/agent';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { createFakeRuntime, FakeWorld } from '@keelson/runtime-fake';
import { startTestPlane } from '@keelson/testing';
import test from 'ava';
import { scratchDirectory } from '../../src/agent-node.ts';

const users = new Map([
  ['t-admin', { name: 'ann', groups: ['system:masters', 'system:authenticated'] }],
  ['t-jane', { name: 'jane', groups: ['system:authenticated'] }],
]);

test('an agent authenticates and authorizes clients by its server: --authentication-token-webhook, --authorization-mode=Webhook', async (t) => {
  const plane = await startTestPlane({
    authenticateToken: async (token) => {
      const user = users.get(token);
      return user && { user };
    },
  });
  t.teardown(() => plane.close());
  const { url } = await plane.listen();
  const { dir, remove } = await scratchDirectory();
  t.teardown(remove);
  const clusterconfig = join(dir, 'clusterconfig');
  await writeFile(
    clusterconfig,
    JSON.stringify({
      'current-context': 'a',
      contexts: [{ name: 'a', context: { cluster: 'c', user: '' } }],
      clusters: [{ name: 'c', cluster: { server: url } }],
    }),
  );
  const words = [
    `--clusterconfig=${clusterconfig}`,
    `--root-dir=${dir}/root`,
    `--cert-dir=${dir}/pki`,
    '--hostname-override=n1',
    '--address=127.0.0.1',
    '--port=0',
    '--read-only-port=0',
    '--healthz-port=0',
    '--stats-port=0',
    '--authentication-token-webhook',
    '--authorization-mode=Webhook',
  ];
  const { config } = resolveConfig(parseOptions(words), { hostname: () => 'n1', fileExists: () => false });
  const agent = await runAgent({
    config,
    effective: {},
    engine: createFakeRuntime(new FakeWorld({ clock: systemClock })),
    logRoot: join(dir, 'log'),
    clock: systemClock,
    logger: silentLogger,
  });
  t.teardown(() => agent.stop());
  const statsAs = (token?: string) =>
    new Promise<readonly [status: number, body: string]>((resolve, reject) => {
      const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
      const options = { agent: false, rejectUnauthorized: false, headers };
      const outgoing = request(`https://127.0.0.1:${agent.servers.port}/stats/summary`, options, (incoming) => {
        let body = '';
        incoming.on('data', (chunk) => {
          body += String(chunk);
        });
        incoming.on('end', () => resolve([incoming.statusCode ?? 0, body]));
      });
      outgoing.on('error', reject);
      outgoing.end();
    });
  const [status, body] = await statsAs('t-admin');
  t.is(status, 200);
  t.is(JSON.parse(body).node.nodeName, 'n1');
  t.deepEqual(await statsAs('t-jane'), [403, 'Forbidden (user=jane, verb=get, resource=nodes, subresource=stats)\n']);
  t.deepEqual(await statsAs('nope'), [401, 'Unauthorized\n']);
  t.deepEqual(await statsAs(), [
    403,
    'Forbidden (user=system:anonymous, verb=get, resource=nodes, subresource=stats)\n',
  ]);
});
