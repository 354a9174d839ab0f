// Process of its own: many planes, one after the other.
import type { ApiClient } from '@keelson/core';
import { Deployment, Pod, ReplicaSet } from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { deploymentController } from '../src/deployment/deployment-controller.ts';
import { replicaSetController } from '../src/replicaset/replica-set-controller.ts';
import { interceptedClient } from './support/intercepted-client.ts';
import { runUntilKilled } from './support/killed-controllers.ts';
import { Random, seed } from './support/random.ts';
import { limitsOf, RolloutLimits } from './support/rollout-limits.ts';
import { template, WorkloadPlane } from './support/workload-plane.ts';

const controllers = [deploymentController, replicaSetController];
const labels = { app: 'web' };
const sequences = Number(process.env['KEELSON_ROLLOUT_RUNS'] ?? 8);
const kills = Number(process.env['KEELSON_ROLLOUT_KILLS'] ?? 200);

const paces = [
  { maxSurge: 1, maxUnavailable: 0 },
  { maxSurge: 0, maxUnavailable: 1 },
  { maxSurge: '25%', maxUnavailable: '25%' },
  { maxSurge: 2, maxUnavailable: 1 },
  { maxSurge: '100%', maxUnavailable: 0 },
];

function deployment(replicas: number, image: string, pace = paces[2]): Deployment {
  return {
    metadata: { name: 'web' },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: template(labels, image),
      strategy: { type: 'RollingUpdate', rollingUpdate: { ...pace } },
    },
  };
}

const imageOf = ({ spec }: Pod) => spec.containers?.[0]?.image ?? '';

/** A deployment whose limits are observed, with nodes on which pods of the image `bad` never become ready. */
async function observed(t: ExecutionContext, first: Deployment) {
  const limits = new RolloutLimits('app=web');
  const workloads = await WorkloadPlane.start(t, {
    controllers,
    nodeOf: (pod) => ((pod.metadata?.name?.charCodeAt(4) ?? 0) % 2 === 0 ? 'node' : undefined),
    fateOf: (pod) => (imageOf(pod) === 'bad' ? 'running' : 'ready'),
  });
  limits.start(workloads.plane.api);
  t.teardown(() => limits.stop());
  limits.willApply(limitsOf(first));
  let present = await workloads.objects(Deployment).create(first);
  return {
    limits,
    workloads,
    present: () => present,
    apply: async (spec: object) => {
      const merged = { ...present, spec: { ...present.spec, ...spec } };
      limits.willApply(limitsOf(merged));
      present = await workloads.objects(Deployment).patch('web', 'merge', { spec });
    },
    /** Waits until the deployment is in the state of the model: all pods are of the present template and available. */
    converges: async () => {
      const { replicas = 1, template: pods } = present.spec;
      const expected = Array(replicas).fill(pods.spec?.containers?.[0]?.image).join();
      const done = await until(
        async () => {
          workloads.clock.advance(50);
          // The status may not yet show a failure that the test has caused, so the pods are compared, too.
          if ((await workloads.activePods()).map(imageOf).join() !== expected) return undefined;
          return (await isComplete(workloads)) ? workloads.objects(Deployment).get('web') : undefined;
        },
        `all pods are ${expected}`,
        60_000,
      );
      t.pass();
      await limits.completed(limitsOf(done));
    },
  };
}

test('random changes and failures keep the limits of a rolling update, and converge', async (t) => {
  t.timeout(120_000 + sequences * 15_000);
  for (let run = 0; run < sequences; run += 1) {
    const random = new Random(seed + run);
    const { limits, workloads, apply, converges, present } = await observed(
      t,
      deployment(random.below(8), 'v0', random.pick(paces)),
    );
    const steps: string[] = [];
    const fail = async (change: (name: string) => Promise<unknown>) => {
      const name = random.pick([...(await workloads.activePods()), undefined])?.metadata?.name;
      if (name === undefined) return;
      limits.willFail(name);
      await change(name).catch(() => undefined);
    };
    const actions = {
      image: () => apply({ template: template(labels, `v${random.below(4)}`) }),
      bad: () => apply({ template: template(labels, 'bad') }),
      scale: () => apply({ replicas: random.below(9) }),
      pace: () => apply({ strategy: { type: 'RollingUpdate', rollingUpdate: { ...random.pick(paces) } } }),
      pause: () => apply({ paused: !present().spec.paused }),
      failed: () => fail((name) => workloads.setStatus(name, { phase: 'Failed' })),
      deleted: () => fail((name) => workloads.objects(Pod).delete(name)),
      drained: async () => {
        for (let i = 0; i < 3; i += 1) await fail((name) => workloads.objects(Pod).delete(name));
      },
      wait: async () => {
        for (let turns = random.below(30); turns > 0; turns -= 1) await new Promise((next) => setImmediate(next));
        workloads.clock.advance(200);
      },
      converge: async () => {
        if (present().spec.paused || imageOf({ spec: present().spec.template.spec } as Pod) === 'bad') return;
        await converges();
      },
    };
    const names = Object.keys(actions) as (keyof typeof actions)[];
    for (let step = 0; step < 14; step += 1) {
      const name = random.pick(names);
      steps.push(name);
      await actions[name]();
      await actions.wait();
    }
    await apply({ paused: false, template: template(labels, 'last') });
    await converges();
    await limits.stop();
    t.deepEqual(limits.violations, [], `seed ${seed + run}: ${steps.join(' ')}`);
    await workloads.close();
  }
});

test('controllers that stop between any two writes leave no duplicates, and stay within the surge', async (t) => {
  t.timeout(120_000 + kills * 600);
  const random = new Random(seed);
  const { limits, workloads, apply, converges } = await observed(t, deployment(4, 'v0'));
  await converges();
  for (let kill = 0; kill < kills; kill += 1) {
    await workloads.stopControllers();
    if (kill % 8 === 0) await apply({ template: template(labels, `v${kill / 8 + 1}`), replicas: 3 + random.below(4) });
    await runUntilKilled(workloads, random, () => isComplete(workloads));
  }
  await workloads.stopControllers();
  await workloads.startControllers();
  await converges();
  await limits.stop();
  t.deepEqual(limits.violations, [], `seed ${seed}`);
  const sets = await until(async () => {
    workloads.clock.advance(100);
    const found = await workloads.list(ReplicaSet);
    return found.length <= 11 && found;
  }, 'the replica sets beyond revisionHistoryLimit are deleted');
  const images = sets.map(({ spec }) => spec.template?.spec?.containers?.[0]?.image);
  t.is(new Set(images).size, images.length, 'one replica set per template');
});

test('a rollout continues when the local copy shows the end of pods later than the status of their replica set', async (t) => {
  const wrapClient = (client: ApiClient) =>
    interceptedClient(client, {
      event: async (resource) => {
        if (resource === 'pods') await new Promise((resolve) => setTimeout(resolve, 5));
      },
    });
  const workloads = await WorkloadPlane.start(t, { controllers, wrapClient });
  await workloads.objects(Deployment).create(deployment(4, 'v0', { maxSurge: 1, maxUnavailable: 0 }));
  for (const image of ['v0', 'v1', 'v2']) {
    await workloads.objects(Deployment).patch('web', 'merge', { spec: { template: template(labels, image) } });
    const began = workloads.clock.now();
    await until(
      () => {
        workloads.clock.advance(20);
        return isComplete(workloads);
      },
      `the rollout of ${image} is complete`,
      60_000,
    );
    t.true(workloads.clock.now() - began < 500_000, 'before the deadline of its progress, which reconciles it again');
  }
});

async function isComplete(workloads: WorkloadPlane): Promise<boolean> {
  const { metadata, spec, status = {} } = await workloads.objects(Deployment).get('web');
  const counts = [status.replicas, status.updatedReplicas, status.availableReplicas];
  return status.observedGeneration === metadata?.generation && counts.every((n = 0) => n === spec.replicas);
}
