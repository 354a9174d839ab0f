import { setTimeout as sleep } from 'node:timers/promises';
import { percentile } from '../measure/statistics.ts';
import type { Measurement, Scenario, Stage } from '../scenarios/scenario.ts';
import { ProcessNode } from './process-node.ts';

const mostPods = 100;
/** Fewer in a short run. */
const podsOf = (stage: Stage): number => Math.min(mostPods, Math.ceil(stage.objects / 10));
const megabyte = 1_000_000;

async function withPods<T>(
  stage: Stage,
  measure: (node: ProcessNode, times: readonly number[]) => Promise<T>,
): Promise<T> {
  const node = await ProcessNode.start();
  const pods = podsOf(stage);
  try {
    const times: number[] = [];
    for (let i = 0; i < pods; i += 1) {
      times.push(await node.run());
      if (i % 10 === 9) stage.progress(`${i + 1} of ${pods} pods`);
    }
    return await measure(node, times);
  } finally {
    await node.stop();
  }
}

export const manifestToContainer: Scenario = {
  name: 'agent: manifest to container',
  what: `p99 ms from a manifest's appearance in the folder until its container runs, ${mostPods} of them one after the other on the process runtime, beside one second`,
  goal: { form: 'times', mark: 1 },
  everyAdapter: false,
  run: (stage) =>
    withPods(
      stage,
      async (_, times): Promise<Measurement> => ({
        unit: 'ms',
        rounds: [{ floor: 1000, subject: percentile(times, 0.99) }],
        leastRounds: 1,
        notes: { 'p50 ms': percentile(times, 0.5) },
      }),
    ),
};

/** Longer than any period of the agent but that of reports without a server; shorter in a short run. */
const idleSliceOf = (stage: Stage): number => Math.min(10_000, stage.sliceMs * 15);

export const idleAgent: Scenario = {
  name: 'agent: idle with 100 pods',
  what: `share of a core that an agent uses while ${mostPods} pods run on the process runtime and nothing happens, beside 2 %`,
  goal: { form: 'times', mark: 1 },
  everyAdapter: false,
  run: (stage) =>
    withPods(stage, async (node): Promise<Measurement> => {
      const rounds = [];
      for (let round = 0; round <= Math.min(stage.rounds, 3); round += 1) {
        const before = node.cpu();
        const at = performance.now();
        await sleep(idleSliceOf(stage));
        const share = (node.cpu() - before) / ((performance.now() - at) / 1000);
        if (round > 0) rounds.push({ floor: 2, subject: share * 100 });
      }
      return { unit: '% of a core', rounds, leastRounds: 1, notes: { 'agent MB': node.memory() / megabyte } };
    }),
};

export const agentMemory: Scenario = {
  name: 'agent: memory with 100 pods',
  what: `resident megabytes of an agent with ${mostPods} pods on the process runtime, without what is mapped from files, beside 150`,
  goal: { form: 'times', mark: 1 },
  everyAdapter: false,
  run: (stage) =>
    withPods(stage, async (node): Promise<Measurement> => {
      await sleep(idleSliceOf(stage));
      return { unit: 'MB', rounds: [{ floor: 150, subject: node.memory() / megabyte }], leastRounds: 1 };
    }),
};
