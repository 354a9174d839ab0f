import { type RuntimeCase, RuntimeCaseContext } from './runtime/case-context.ts';
import { adoptionCases } from './runtime/cases/adoption-cases.ts';
import { containerCases } from './runtime/cases/container-cases.ts';
import { execCases } from './runtime/cases/exec-cases.ts';
import { imageCases } from './runtime/cases/image-cases.ts';
import { loadCases } from './runtime/cases/load-cases.ts';
import { logCases } from './runtime/cases/log-cases.ts';
import { observeCases } from './runtime/cases/observe-cases.ts';
import { processCases } from './runtime/cases/process-cases.ts';
import { sandboxCases } from './runtime/cases/sandbox-cases.ts';
import { stopCases } from './runtime/cases/stop-cases.ts';
import { missingRuntimeRequirements, type RuntimeHarness } from './runtime/harness.ts';
import { casesOf, registerCases, runCase, type TestFunction } from './suite/conformance-suite.ts';

/** All cases for container runtimes; the ids of the cases are stable and unique. */
export const runtimeCases: readonly RuntimeCase[] = casesOf(
  sandboxCases,
  containerCases,
  stopCases,
  processCases,
  logCases,
  execCases,
  imageCases,
  observeCases,
  adoptionCases,
  loadCases,
);

/** Time limit of a case that is run on its own; a registered test has its own, shorter limit. */
const caseTimeoutMs = 120_000;
const testTimeoutMs = 60_000;
const queueTimeoutMs = 600_000;

/**
 * Opens an engine, runs one case on it and disposes of it. Rejects when the case fails, and when the engine leaves
 * something on the machine.
 */
export function runRuntimeCase(
  harness: RuntimeHarness,
  runtimeCase: RuntimeCase,
  log: (message: string) => void = () => {},
): Promise<void> {
  return runCase({ name: harness.name, timeoutMs: caseTimeoutMs }, runtimeCase, async (defer) => {
    const opened = await (runtimeCase.isCommon && harness.openCommon ? harness.openCommon() : harness.open());
    const context = new RuntimeCaseContext(harness, opened, log);
    defer(() => context.opened.dispose());
    return context;
  });
}

/**
 * Registers every case as a test. Titles are `NAME: ID: sentence`. A case that needs what the runtime or the harness
 * does not offer is skipped, with the reason in its title. Every case opens an engine that no other case uses at the
 * same time, so that cases may run concurrently.
 */
export function registerRuntimeConformance(test: TestFunction, harness: RuntimeHarness): void {
  const inTurn = limitConcurrency(harness.concurrency ?? Number.POSITIVE_INFINITY);
  registerCases(
    test,
    harness.name,
    runtimeCases,
    ({ requires }) => missingRuntimeRequirements(harness, requires),
    async (runtimeCase, t) => {
      t.timeout(queueTimeoutMs);
      await inTurn(async () => {
        t.timeout(testTimeoutMs);
        await runRuntimeCase(harness, runtimeCase, (message) => t.log(message));
      });
    },
  );
}

/** Returns a function that runs at most `limit` tasks concurrently, in the order of its calls. */
function limitConcurrency(limit: number): (task: () => Promise<void>) => Promise<void> {
  const waiting: (() => void)[] = [];
  let free = limit;
  return async (task) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      await task();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}
