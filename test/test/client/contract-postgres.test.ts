import test from 'ava';
import { registerContractOn } from '../../src/client-contract.ts';
import { startPostgresDatabase } from '../../src/faults/databases.ts';

const database = await startPostgresDatabase({ durable: false });

if (database === undefined) {
  if (process.env['CI'] !== undefined) test('PostgreSQL is available', (t) => t.fail('no PostgreSQL on this machine'));
  else test.skip('clients on PostgreSQL [not run: no PostgreSQL on this machine]', () => {});
} else {
  let spaces = 0;
  test.after.always(() => database.close());
  registerContractOn('postgres', async () => {
    spaces += 1;
    return { store: await database.open(`space_${spaces}`), remove: async () => {} };
  });
}
