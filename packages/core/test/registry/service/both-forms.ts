import anyTest, { type ExecutionContext, type TestFn } from 'ava';

/** How the storages under test read: each time from the store, or from the watch cache. */
export type StorageForm = 'direct' | 'cached';

export interface FormContext {
  form: StorageForm;
}

const base = anyTest as TestFn<FormContext>;

/** Registers a test once for each form of storage: callers must not be able to distinguish them. */
export function test(title: string, run: (t: ExecutionContext<FormContext>) => Promise<void>): void {
  for (const form of ['direct', 'cached'] as const) {
    base(`${title} (${form})`, async (t) => {
      t.context = { form };
      await run(t);
    });
  }
}
