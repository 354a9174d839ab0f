import { missingRuntimeRequirements, runRuntimeCase, runtimeCases } from '@keelson/conformance';
import { openProcess, processHarness } from './process-harness.ts';

/**
 * Runs the suite as the user of this process and writes a line of JSON per case. The arguments are the first words of
 * the ids of the cases, without any: all cases.
 */
const chosen = process.argv.slice(2);
const probe = await openProcess();
const { capabilities } = probe.engine.runtime;
await probe.dispose();
// The suite that runs as root starts 30 pods at once.
const harness = processHarness('process', capabilities, {}, { loadPods: 9 });

const pending = runtimeCases.filter(
  ({ id, requires }) =>
    missingRuntimeRequirements(harness, requires).length === 0 &&
    (chosen.length === 0 || chosen.some((word) => id.startsWith(`${word}.`))),
);
const report = (id: string, error?: string) => process.stdout.write(`${JSON.stringify({ id, error })}\n`);

async function work(): Promise<void> {
  for (let next = pending.shift(); next !== undefined; next = pending.shift()) {
    const { id } = next;
    await runRuntimeCase(harness, next).then(
      () => report(id),
      (error: Error) => report(id, error.message),
    );
  }
}
await Promise.all(Array.from({ length: 4 }, work));
await harness[Symbol.asyncDispose]();
process.exit(0);
