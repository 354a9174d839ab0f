import { readFile, writeFile } from 'node:fs/promises';
import anyTest, { type TestFn } from 'ava';
import { startBalancer } from './balancer.ts';
import {
  type DatabaseName,
  etcdDatabase,
  type FaultDatabase,
  offersDatabase,
  postgresDatabase,
} from './faults/databases.ts';
import {
  type KeelsonProcess,
  memoryDirectory,
  removeDirectory,
  startKeelson,
  storageArguments,
} from './keelson-process.ts';
import { findKubectl, Kubectl } from './kubectl.ts';

/** A server in a process of its own and a kubectl bound to it. */
export interface KubectlContext {
  /** The first, when the kubeconfig refers to several. */
  readonly server: KeelsonProcess;
  readonly kubectl: Kubectl;
  /** A directory of the test, removed when the file ends. */
  readonly folder: string;
}

/** Steps of the cleanup when the file ends, last first. */
class Cleanup {
  readonly #steps: (() => unknown)[] = [];

  teardown(step: () => unknown): void {
    this.#steps.unshift(step);
  }

  async run(): Promise<void> {
    for (const step of this.#steps) await step();
  }
}

const databases = { etcd: etcdDatabase, postgres: postgresDatabase };

type Servers = (folder: string, cleanup: Cleanup) => Promise<{ server: KeelsonProcess; kubeconfig: string }>;

async function twoServers(folder: string, database: FaultDatabase, cleanup: Cleanup) {
  const data = `${folder}/data`;
  const servers: KeelsonProcess[] = [];
  for (let i = 0; i < 2; i += 1) {
    const server = await startKeelson(data, ['--storage', database.storage({})]);
    cleanup.teardown(() => server.stop());
    servers.push(server);
  }
  const balancer = await startBalancer(servers.map(({ url }) => Number(new URL(url).port)));
  cleanup.teardown(() => balancer.close());
  const kubeconfig = `${folder}/kubeconfig`;
  const text = await readFile(`${data}/kubeconfig`, 'utf8');
  await writeFile(kubeconfig, text.replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${balancer.port}`), { mode: 0o600 });
  return { server: servers[0] as KeelsonProcess, kubeconfig };
}

async function oneServer(folder: string, args: readonly string[], cleanup: Cleanup) {
  const server = await startKeelson(`${folder}/data`, [...storageArguments(), ...args]);
  cleanup.teardown(() => server.stop());
  return { server, kubeconfig: server.kubeconfig };
}

function skipping(why: string): TestFn<KubectlContext> {
  return ((title: string) => anyTest.skip(`${title} (${why})`, () => {})) as unknown as TestFn<KubectlContext>;
}

/** Servers that start when the first of their test files begins, and end with the last file of this process. */
class Cluster {
  readonly #command: string;
  readonly #servers: Servers;
  readonly #cleanup = new Cleanup();
  #context: Promise<KubectlContext> | undefined;
  #files = 0;

  constructor(command: string, servers: Servers) {
    this.#command = command;
    this.#servers = servers;
  }

  /** AVA's test function for one more file. */
  test(): TestFn<KubectlContext> {
    const test = anyTest as TestFn<KubectlContext>;
    let context: KubectlContext;
    this.#files += 1;
    test.before(async (t) => {
      t.timeout(120_000);
      this.#context ??= this.#start();
      context = await this.#context;
    });
    test.beforeEach((t) => {
      t.context = context;
    });
    test.after.always(async () => {
      this.#files -= 1;
      if (this.#files === 0) await this.#cleanup.run();
    });
    return test;
  }

  async #start(): Promise<KubectlContext> {
    const folder = await memoryDirectory();
    this.#cleanup.teardown(() => removeDirectory(folder));
    const { server, kubeconfig } = await this.#servers(folder, this.#cleanup);
    return { server, folder, kubectl: new Kubectl(this.#command, kubeconfig, folder) };
  }
}

/** AVA's test function with servers for one test file alone. */
function testOn(servers: Servers): TestFn<KubectlContext> {
  const command = findKubectl();
  return command === undefined ? skipping('no kubectl on this machine') : new Cluster(command, servers).test();
}

let shared: Cluster | undefined;

/**
 * AVA's test function with a server on its default storage, which all files of this process have in common: what they
 * leave behind must not affect other files. Without a kubectl the tests are skipped visibly; in CI that is an error.
 */
export function kubectlTest(): TestFn<KubectlContext> {
  const command = findKubectl();
  if (command === undefined) return skipping('no kubectl on this machine');
  shared ??= new Cluster(command, (folder, cleanup) => oneServer(folder, [], cleanup));
  return shared.test();
}

/** The same with a server of the file's own, which has these arguments. */
export function kubectlTestWith(args: readonly string[]): TestFn<KubectlContext> {
  return testOn((folder, cleanup) => oneServer(folder, args, cleanup));
}

/**
 * AVA's test function with two servers on one database, between which the connections of kubectl alternate. Without a
 * kubectl or the database the tests are skipped visibly; in CI that is an error.
 */
export async function kubectlTestOn(backend: DatabaseName): Promise<TestFn<KubectlContext>> {
  if (!(await offersDatabase(backend))) return skipping(`no ${backend} on this machine`);
  return testOn(async (folder, cleanup) => twoServers(folder, await databases[backend](cleanup), cleanup));
}

/** Creates a namespace named after the test and returns its name. */
export async function namespaceFor(kubectl: Kubectl, title: string): Promise<string> {
  const name = title
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, 50)
    .replace(/^-+|-+$/g, '');
  await kubectl.post('/api/v1/namespaces', { metadata: { name } });
  return name;
}
