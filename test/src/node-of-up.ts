import { hostname } from 'node:os';
import { join } from 'node:path';
import { type KeelsonProcess, removeDirectory, startKeelson, temporaryDirectory } from './keelson-process.ts';
import { Kubectl } from './kubectl.ts';

/** The name of the node of `keelson up`. */
export const nodeName = hostname().trim().toLowerCase();

/** A `keelson up` in a process of its own, and kubectl for it. */
export interface NodeOfUp {
  readonly kubectl: Kubectl;
  /** A directory of the test's own, where containers may write and read: they are processes of the host. */
  readonly folder: string;
  readonly server: KeelsonProcess;
  /** Ends the pods, the server, and the directory. */
  stop(): Promise<void>;
}

export interface Shell {
  readonly name: string;
  readonly script: string;
  /** More fields of the container. */
  readonly extra?: object;
}

/** Starts it; resolves when its node is Ready. */
export async function startNodeOfUp(command: string, args: readonly string[] = []): Promise<NodeOfUp> {
  const folder = await temporaryDirectory();
  const server = await startKeelson(join(folder, 'data'), ['--log-level', 'warn', ...args], 'up');
  const kubectl = new Kubectl(command, server.kubeconfig, folder);
  // `kubectl wait` fails as long as there is no node.
  const nodes = kubectl.follow(['get', 'nodes', '--watch', '--no-headers']);
  await nodes.waitFor(/ Ready /, 60_000);
  await nodes.stop();
  return {
    server,
    kubectl,
    folder,
    async stop() {
      await kubectl.try(['delete', 'pods', '--all', '--now', '--timeout=50s']);
      await server.stop();
      await removeDirectory(folder);
    },
  };
}

/** Creates a pod of shells on the node. */
export async function runShells(
  kubectl: Kubectl,
  name: string,
  shells: readonly Shell[],
  extra: object = {},
): Promise<void> {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: name } },
    spec: {
      nodeName,
      terminationGracePeriodSeconds: 0,
      containers: shells.map((shell) => ({
        ...{ name: shell.name, image: 'host', command: ['sh', '-c', shell.script] },
        ...shell.extra,
      })),
      ...extra,
    },
  };
  await createObject(kubectl, pod);
}

export async function createObject(kubectl: Kubectl, object: object): Promise<void> {
  await kubectl.run(['create', '-f', '-'], { input: JSON.stringify(object) });
}
