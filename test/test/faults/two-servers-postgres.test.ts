import test from 'ava';
import { postgresDatabase } from '../../src/faults/databases.ts';
import { faults } from '../../src/faults/fault-run.ts';
import { fullCount, twoServers } from '../../src/faults/two-servers.ts';

const count = faults(8, fullCount(true));

test(`two servers on one PostgreSQL, one of them without notifications, under ${count} faults agree with each other and lose nothing`, async (t) => {
  t.timeout(180_000 + count * 20_000);
  const database = await postgresDatabase(t);
  if (database === undefined) {
    if (process.env['CI'] !== undefined) t.fail('no PostgreSQL on this machine');
    else t.pass('not run: no PostgreSQL on this machine');
    return;
  }
  await twoServers(t, database, count, { notify: 'off' });
});
