import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Spawned } from '../measure/spawned.ts';
import { measureRounds, type StoreScenario, type StoreStage } from './store-scenario.ts';
import { openStore, type StoreSpec } from './store-spec.ts';

const program = fileURLToPath(new URL('./store-process-server.js', import.meta.url));
const watches = 100;
const idleMark = 1;
const megabyte = 1_000_000;
/** In which freed pages go back to the system. */
const quietMs = 500;
const memoryRounds = 3;

const start = (spec: StoreSpec | undefined, entries = 0, open = 0, flags: readonly string[] = []): Promise<Spawned> => {
  const words = spec === undefined ? [] : [JSON.stringify(spec), String(entries), String(open)];
  return Spawned.start(process.execPath, [...flags, program, ...words]);
};

async function startTime(spec: StoreSpec | undefined): Promise<number> {
  const at = performance.now();
  const child = await start(spec);
  const measured = performance.now() - at;
  await child.stop();
  return measured;
}

async function settledMemory(stage: StoreStage, spec: StoreSpec | undefined): Promise<number> {
  const child = await start(spec, stage.objects, 0, ['--expose-gc']);
  try {
    await sleep(Math.min(quietMs, stage.objects));
    return child.memory() / megabyte;
  } finally {
    await child.stop();
  }
}

export const processScenarios: readonly StoreScenario[] = [
  {
    name: 'store start',
    what: 'from the start of a process to the first answer of a store that exists, beside a bare Node process',
    form: 'times',
    goal: () => undefined,
    run: async (stage) => {
      const spec = stage.ground.spec('start');
      await (await openStore(spec)).close();
      const rounds = await measureRounds(stage, async () => ({
        floor: await startTime(undefined),
        subject: await startTime(spec),
      }));
      return { unit: 'wall ms', rounds };
    },
  },
  {
    name: 'store memory',
    what: 'memory of a process that wrote the entries of 1 KB through its store, after a garbage collection, beside a bare Node process (mapped files not counted; memory holds all data itself)',
    form: 'times',
    goal: () => undefined,
    run: async (stage) => {
      const rounds = [];
      const count = Math.min(memoryRounds, stage.rounds);
      for (let round = 1; round <= count; round += 1) {
        const floor = await settledMemory(stage, undefined);
        rounds.push({ floor, subject: await settledMemory(stage, stage.ground.spec(`memory${round}`)) });
        stage.progress(`round ${round} of ${count}`);
      }
      return { unit: 'MB', rounds, leastRounds: count, notes: { entries: stage.objects } };
    },
  },
  {
    name: 'store idle with 100 watches',
    what: 'share of a core that a process with 100 open watches on its store uses while nothing happens, beside 1 %',
    form: 'times',
    goal: () => ({ form: 'times', mark: idleMark }),
    run: async (stage) => {
      const child = await start(stage.ground.spec('idle'), 1, watches);
      try {
        const rounds = await measureRounds(stage, async () => {
          const before = child.cpu();
          const at = performance.now();
          await sleep(stage.sliceMs);
          return { floor: 1, subject: ((child.cpu() - before) / ((performance.now() - at) / 1000)) * 100 };
        });
        return { unit: '% of a core', rounds };
      } finally {
        await child.stop();
      }
    },
  },
];
