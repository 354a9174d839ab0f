import type { ContainerRuntime } from '@keelson/container-runtime';
import { type Clock, pause } from '@keelson/core/runtime';
import type { Container, coreV1 } from '@keelson/kinds';
import { httpCheck } from '../probes/http-check.ts';
import { portOf } from '../probes/port-of.ts';

export interface HookTarget {
  readonly containerId: string;
  /** Undefined for a pod that no source has: named ports cannot be resolved then. */
  readonly container: Container | undefined;
  readonly podIp: string | undefined;
}

/**
 * Runs a postStart or preStop hook.
 * @throws Error with a message for an event when the hook failed
 */
export async function runHook(
  handler: coreV1.LifecycleHandler,
  target: HookTarget,
  runtime: ContainerRuntime,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const { exec, httpGet, sleep } = handler;
  if (exec) {
    const { exitCode, stdout, stderr } = await runtime.execSync(
      target.containerId,
      { command: exec.command ?? [] },
      { signal },
    );
    if (exitCode === 0) return;
    const output = Buffer.concat([stdout, stderr]).toString('utf8').slice(0, 1024);
    throw new Error(`command '${(exec.command ?? []).join(' ')}' exited with ${exitCode}: ${output}`);
  }
  if (httpGet) {
    const host = httpGet.host || target.podIp;
    if (!host) throw new Error('the pod has no address to send the request to');
    const port = portOf(httpGet.port, target.container ?? { name: '' });
    const scheme = httpGet.scheme === 'HTTPS' ? 'HTTPS' : 'HTTP';
    const { code } = await httpCheck(
      { host, port, scheme, path: httpGet.path ?? '/', headers: httpGet.httpHeaders ?? [] },
      signal,
    );
    if (code < 200 || code >= 400) throw new Error(`the request returned status code ${code}`);
    return;
  }
  if (sleep) {
    await pause(clock, Number(sleep.seconds) * 1000, signal);
    signal.throwIfAborted();
    return;
  }
  throw new Error('this kind of hook is not supported');
}
