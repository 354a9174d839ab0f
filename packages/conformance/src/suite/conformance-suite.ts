import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';

/** One statement about every implementation of a contract. */
export interface ConformanceCase<Context, Requirement extends string> {
  /** Stable and unique within its suite: `group.statement`. */
  readonly id: string;
  /** The statement as a sentence. */
  readonly title: string;
  /** Hooks and capabilities without which the case cannot run. */
  readonly requires?: readonly Requirement[];
  /** Throws when the statement does not hold. */
  run(context: Context): Promise<void>;
}

/** The part of a test's context that the suites use; ava's context has it. */
export interface TestContext {
  pass(message?: string): void;
  log(...values: unknown[]): void;
  timeout(ms: number): void;
}

/** The part of a test function that the suites use; ava's `test` has it. */
export interface TestFunction {
  (title: string, run: (t: TestContext) => Promise<void>): void;
  skip(title: string, run: (t: TestContext) => Promise<void>): void;
}

/** Registers a function that runs after the case. Functions run in reverse order of registration. */
export type Defer = (cleanup: () => void | Promise<void>) => void;

interface CaseRun {
  /** Name of the harness; the first part of the message of a failure. */
  readonly name: string;
  /** Seed of the random choices of the case; part of the message of a failure. */
  readonly seed?: number;
  /** Time limit of the case in milliseconds, without opening and clean-up. */
  readonly timeoutMs: number;
}

/** Default limit of a case, of which many run at once on a database. */
export const caseTimeoutMs = 60_000;
/** Opening and clean-up included. */
const testTimeoutMs = 90_000;

/** Concatenates groups of cases. Throws when two cases have the same id. */
export function casesOf<C extends { readonly id: string }>(...groups: readonly (readonly C[])[]): readonly C[] {
  const cases = groups.flat();
  assert.equal(new Set(cases.map(({ id }) => id)).size, cases.length, 'case ids are unique');
  return cases;
}

/**
 * Opens a context, runs one case with it within the time limit, and runs the deferred clean-up in any case. An error of
 * the clean-up is a failure of a case that has not failed before.
 */
export async function runCase<Context>(
  { name, seed, timeoutMs }: CaseRun,
  { id, run }: ConformanceCase<Context, string>,
  open: (defer: Defer) => Promise<Context>,
): Promise<void> {
  const cleanups: (() => void | Promise<void>)[] = [];
  const failures: unknown[] = [];
  try {
    const context = await open((cleanup) => cleanups.unshift(cleanup));
    await withinTimeLimit(timeoutMs, () => run(context));
  } catch (error) {
    failures.push(error);
  }
  try {
    for (const cleanup of cleanups) await cleanup();
  } catch (error) {
    failures.push(error);
  }
  if (failures.length === 0) return;
  const [cause] = failures;
  const text = cause instanceof Error ? cause.message : String(cause);
  const suffix = seed === undefined ? '' : ` (KEELSON_SEED=${seed})`;
  throw new Error(`${name}: ${id}: ${text}${suffix}`, { cause });
}

async function withinTimeLimit(timeoutMs: number, run: () => Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not finished within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    await Promise.race([run(), timeout]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * Registers every case as a test. Titles are `NAME: ID: sentence`. A case with requirements that the harness does not
 * meet is registered as skipped, with the missing requirements in its title.
 * @param missing returns the requirements of a case that the harness does not meet
 */
export function registerCases<C extends ConformanceCase<never, string>>(
  test: TestFunction,
  name: string,
  cases: readonly C[],
  missing: (conformanceCase: C) => readonly string[],
  run: (conformanceCase: C, t: TestContext) => Promise<void>,
): void {
  for (const conformanceCase of cases) {
    const title = `${name}: ${conformanceCase.id}: ${conformanceCase.title}`;
    const requirements = missing(conformanceCase);
    if (requirements.length > 0) {
      test.skip(`${title} [not run, the harness has no ${requirements.join(', ')}]`, async () => {});
      continue;
    }
    test(title, async (t) => {
      t.timeout(testTimeoutMs);
      await run(conformanceCase, t);
      t.pass();
    });
  }
}

/** The seed of the environment variable `KEELSON_SEED`, otherwise a random one. */
export function caseSeed(): number {
  const configured = process.env['KEELSON_SEED'];
  return configured === undefined ? randomInt(2 ** 31) : Number(configured);
}
