import { createServer } from 'node:http';
import test from 'ava';
import { declineUpgradesWithBody } from '../../src/runtime.ts';

test('a server upgrades connections of requests without a body only', (t) => {
  const server = createServer();
  declineUpgradesWithBody(server);
  const { shouldUpgradeCallback: accepts } = server as unknown as { shouldUpgradeCallback(request: object): boolean };
  t.true(accepts({ headers: { upgrade: 'websocket' } }));
  t.true(accepts({ headers: { upgrade: 'SPDY/3.1', 'content-length': '0' } }));
  t.false(accepts({ headers: { upgrade: 'h2c', 'content-length': '5' } }));
  t.false(accepts({ headers: { upgrade: 'h2c', 'transfer-encoding': 'chunked' } }));
});
