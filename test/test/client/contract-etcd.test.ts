import test from 'ava';
import { registerContractOn } from '../../src/client-contract.ts';
import { startEtcdDatabase } from '../../src/faults/databases.ts';

const database = await startEtcdDatabase();

if (database === undefined) {
  if (process.env['CI'] !== undefined) test('etcd is available', (t) => t.fail('no etcd on this machine'));
  else test.skip('clients on etcd [not run: no etcd on this machine]', () => {});
} else {
  let spaces = 0;
  test.after.always(() => database.close());
  registerContractOn('etcd', async () => {
    spaces += 1;
    return { store: await database.open(`space_${spaces}`), remove: async () => {} };
  });
}
