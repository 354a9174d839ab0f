import { type ChildProcess, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { endedWithParent } from '../measure/spawned.ts';

export const keelson = fileURLToPath(new URL('../../../../packages/keelson/dist/bundle/keelson.js', import.meta.url));

/** A program and its words. */
export type Command = [string, ...string[]];

/** Plugins of kube-scheduler that need kinds which the server does not have. */
const disabled = ['VolumeBinding', 'VolumeZone', 'NodeVolumeLimits', 'VolumeRestrictions', 'DynamicResources'];

/** Requests per second of the Go programs: more than they make, so that they do not wait for their own limit. */
const requestsPerSecond = 5000;

/** Starts `keelson WORDS` without access control on the memory adapter. */
export async function startServer(
  folder: string,
  words: readonly string[],
): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const fixed = ['--insecure', '--listen', '127.0.0.1:0', '--storage', 'memory:', '--data', join(folder, 'data')];
  const all = [keelson, ...words, ...fixed, '--log-level', 'silent'];
  const child = endedWithParent(spawn(process.execPath, all, { stdio: ['ignore', 'pipe', 'inherit'] }));
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
    let text = '';
    child.stdout?.on('data', (piece: Buffer) => {
      text += piece.toString();
      const found = /serving on (\S+)/.exec(text)?.[1];
      if (found !== undefined) resolve(found);
    });
  });
  return { child, url };
}

/** Writes the client config of a server without access control. */
export async function writeAccess(folder: string, url: string): Promise<string> {
  const file = join(folder, 'access.json');
  const contexts = [{ name: 'c', context: { cluster: 'k', user: 'u' } }];
  const clusters = [{ name: 'k', cluster: { server: url } }];
  const users = [{ name: 'u', user: {} }];
  const access = { apiVersion: 'v1', kind: 'Config', clusters, users, contexts, 'current-context': 'c' };
  await writeFile(file, JSON.stringify(access));
  return file;
}

/** kube-scheduler 1.34 without election, port and the plugins that this server cannot serve. */
export async function kubeSchedulerCommand(binary: string, folder: string, kubeconfig: string): Promise<Command> {
  const config = join(folder, 'scheduler.json');
  const multiPoint = { disabled: disabled.map((name) => ({ name })) };
  const settings = {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    leaderElection: { leaderElect: false },
    clientConnection: { kubeconfig, qps: requestsPerSecond, burst: requestsPerSecond },
    profiles: [{ schedulerName: 'default-scheduler', plugins: { multiPoint } }],
  };
  await writeFile(config, JSON.stringify(settings));
  return [binary, '--config', config, '--secure-port', '0', '--feature-gates', 'DynamicResourceAllocation=false'];
}

/** kube-controller-manager 1.34 with the given controllers, without election and port. */
export function controllerManagerCommand(binary: string, kubeconfig: string, controllers: readonly string[]): Command {
  return [
    binary,
    ...['--kubeconfig', kubeconfig, '--controllers', controllers.join(',')],
    ...['--leader-elect=false', '--secure-port', '0'],
    ...['--kube-api-qps', `${requestsPerSecond}`, '--kube-api-burst', `${requestsPerSecond}`],
  ];
}
