import { databaseTest, postgresDatabase } from '../../src/faults/databases.ts';
import { faults } from '../../src/faults/fault-run.ts';
import { fullCount, twoServers } from '../../src/faults/two-servers.ts';

const count = faults(4, fullCount(true));

const test = await databaseTest('postgres');

test(`two servers on one PostgreSQL, one of them without notifications, under ${count} faults agree with each other and lose nothing`, async (t) => {
  t.timeout(180_000 + count * 20_000);
  const database = await postgresDatabase(t);
  await twoServers(t, database, count, { notify: 'off' });
});
