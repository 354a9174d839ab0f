import test from 'ava';
import { chooseAddress } from '../../src/nodes/node-address.ts';

const names: Readonly<Record<string, readonly string[]>> = {
  here: ['127.0.1.1'],
  'node.internal': ['10.0.0.2', '10.0.0.3'],
  both: ['127.0.0.1', '10.0.0.4'],
};
const resolve = async (name: string) => names[name] ?? Promise.reject(new Error(`getaddrinfo ENOTFOUND ${name}`));

const choose = (addresses: readonly (readonly [string, string])[], proxied = false) =>
  chooseAddress(
    addresses.map(([type, address]) => ({ type, address })),
    { proxied, resolve },
  );

test('the name of the host comes before internal addresses, and those before external ones', async (t) => {
  t.deepEqual(
    await choose([
      ['ExternalIP', '203.0.113.1'],
      ['InternalIP', '10.0.0.1'],
      ['Hostname', 'here'],
    ]),
    { found: { ip: '127.0.1.1', name: 'here' } },
  );
  t.deepEqual(
    await choose([
      ['ExternalIP', '203.0.113.1'],
      ['InternalIP', '10.0.0.1'],
      ['InternalDNS', 'node.internal'],
    ]),
    { found: { ip: '10.0.0.2', name: 'node.internal' } },
  );
});

test('a name that does not resolve is skipped; without a usable address the error lists all that were tried', async (t) => {
  t.deepEqual(
    await choose([
      ['Hostname', 'nobody'],
      ['InternalIP', 'fd00::2'],
    ]),
    { found: { ip: 'fd00::2' } },
  );
  t.deepEqual(await choose([['Hostname', 'nobody']]), { tried: ['nobody does not resolve'] });
  t.deepEqual(await choose([]), { tried: [] });
});

test('for a proxy, addresses that mean this machine are passed over too', async (t) => {
  t.deepEqual(
    await choose(
      [
        ['Hostname', 'here'],
        ['InternalIP', '169.254.1.1'],
        ['ExternalDNS', 'both'],
      ],
      true,
    ),
    { found: { ip: '10.0.0.4', name: 'both' } },
  );
  t.deepEqual(await choose([['Hostname', '::1']], true), { tried: ['::1 means this machine'] });
});
