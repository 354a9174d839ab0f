import { compactAllTheTime } from '../../src/faults/compaction.ts';
import { databaseTest, etcdBinary } from '../../src/faults/databases.ts';
import { EtcdCluster } from '../../src/faults/etcd-cluster.ts';
import { directoryFor, faults, progress, sleep, startRun } from '../../src/faults/fault-run.ts';
import { FaultServer } from '../../src/faults/fault-server.ts';

const kills = faults(2, 30);

const test = await databaseTest('etcd');

test(`two servers on an etcd of three members whose leader is killed ${kills} times agree with each other and lose nothing`, async (t) => {
  t.timeout(240_000 + kills * 30_000);
  const cluster = await EtcdCluster.start(await etcdBinary());
  t.teardown(() => cluster.close());
  t.log(`etcd ${await cluster.version()}`);
  const servers: FaultServer[] = [];
  for (const first of [0, 1]) {
    const server = await FaultServer.start({ data: await directoryFor(t), storage: cluster.storage(first) });
    t.teardown(() => server.stop());
    servers.push(server);
  }
  const run = await startRun(t, { servers: servers.map(({ url }) => url), callTimeoutMs: 5000 });
  const { workload, random } = run;
  const compaction = compactAllTheTime(t, await cluster.openStore(), workload);
  let slowest = 0;
  for (let kill = 1; kill <= kills; kill++) {
    await run.traffic(60 + random.below(60));
    workload.recorder.mark('kill -9 of the leader');
    const began = performance.now();
    const killed = await cluster.killLeader();
    await run.traffic(1);
    slowest = Math.max(slowest, performance.now() - began);
    await sleep(random.below(1000));
    cluster.restart(killed);
    await run.traffic(40);
    workload.recorder.mark('over');
    progress(t, kill, kills, () => `revision ${workload.latest}, ${workload.acknowledged} writes acknowledged`);
  }
  await compaction.stop();
  const { counts } = await run.judge({ faults: kills, minWrites: kills * 100, minEvents: kills * 200 });
  t.log(
    `writes continued ${Math.round(slowest)} ms after a kill at most; ${compaction.taken} compactions, ${counts.gone} watches ended with 410`,
  );
});
