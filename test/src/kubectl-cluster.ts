import anyTest, { type TestFn } from 'ava';
import { type KeelsonProcess, removeDirectory, startKeelson, storageArguments, temporaryDirectory } from './keelson-process.ts';
import { findKubectl, Kubectl } from './kubectl.ts';

/** A server in a process of its own and a kubectl bound to it. */
export interface KubectlContext {
  readonly server: KeelsonProcess;
  readonly kubectl: Kubectl;
  /** A directory of the test's own; gone when the file ends. */
  readonly folder: string;
}

/**
 * AVA's test function with one server per test file. Without a kubectl the tests are skipped visibly (and fail in CI, see
 * `findKubectl`).
 */
export function kubectlTest(args: readonly string[] = []): TestFn<KubectlContext> {
  const command = findKubectl();
  const test = anyTest as TestFn<KubectlContext>;
  if (command === undefined) {
    return Object.assign(
      (title: string) => anyTest.skip(`${title} (no kubectl on this machine)`, () => {}),
      test,
    ) as unknown as TestFn<KubectlContext>;
  }
  let context: KubectlContext;
  test.before(async () => {
    const folder = await temporaryDirectory();
    const server = await startKeelson(`${folder}/data`, [...storageArguments(), ...args]);
    context = { server, folder, kubectl: new Kubectl(command, server.kubeconfig, folder) };
  });
  test.beforeEach((t) => {
    t.context = context;
  });
  test.after.always(async () => {
    if (context === undefined) return;
    await context.server.stop();
    await removeDirectory(context.folder);
  });
  return test;
}

/** Makes a namespace named after the test and returns its name. */
export async function namespaceFor(kubectl: Kubectl, title: string): Promise<string> {
  const name = title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 50)
    .replace(/^-+|-+$/g, '');
  await kubectl.run(['create', '-f', '-'], {
    input: JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }),
  });
  return name;
}
