import { databaseTest, etcdDatabase } from '../../src/faults/databases.ts';
import { faults } from '../../src/faults/fault-run.ts';
import { fullCount, twoServers } from '../../src/faults/two-servers.ts';

const count = faults(4, fullCount(false));

const test = await databaseTest('etcd');

test(`two servers on one etcd under ${count} faults agree with each other and lose nothing`, async (t) => {
  t.timeout(180_000 + count * 20_000);
  const database = await etcdDatabase(t);
  await twoServers(t, database, count);
});
