import { type ContainerRuntime, type ContainerStatus, isRuntimeError } from '@keelson/container-runtime';
import type { Clock } from '@keelson/core/runtime';
import type { Container, coreV1 } from '@keelson/kinds';
import { DeadlineError, withDeadline } from '../../base/with-deadline.ts';
import { grpcCheck } from './grpc-check.ts';
import { httpCheck, tcpCheck } from './http-check.ts';
import { portOf } from './port-of.ts';

/** The result of one probe; `unknown` when the probe could not be run, which counts neither as success nor failure. */
export interface Observation {
  readonly result: 'success' | 'failure' | 'unknown';
  readonly output: string;
}

/** Probes a container once. */
export type Probing = (
  probe: coreV1.Probe,
  container: Container,
  status: ContainerStatus,
  podIp: string | undefined,
) => Promise<Observation>;

const maxOutput = 1024;

/** Runs a probe once, by command, HTTP request, TCP connection or gRPC: see docs/reference/agent-rules.md#probes. */
export function createProber(runtime: ContainerRuntime, clock: Clock, signal: AbortSignal): Probing {
  return async (probe, container, status, podIp) => {
    const ms = (probe.timeoutSeconds ?? 1) * 1000;
    try {
      return await withDeadline(clock, ms, signal, (within) =>
        probeOnce(probe, container, status, podIp, runtime, within),
      );
    } catch (error) {
      const output = error instanceof DeadlineError ? `no answer within ${ms / 1000}s` : textOf(error);
      if (error instanceof DeadlineError || !isRuntimeError(error))
        return { result: signal.aborted ? 'unknown' : 'failure', output };
      const failed = isRuntimeError(error, 'StartFailed') || isRuntimeError(error, 'DeadlineExceeded');
      return { result: failed ? 'failure' : 'unknown', output };
    }
  };
}

async function probeOnce(
  probe: coreV1.Probe,
  container: Container,
  status: ContainerStatus,
  podIp: string | undefined,
  runtime: ContainerRuntime,
  signal: AbortSignal,
): Promise<Observation> {
  const { exec, httpGet, tcpSocket, grpc } = probe;
  if (exec) {
    const { exitCode, stdout, stderr } = await runtime.execSync(status.id, { command: exec.command ?? [] }, { signal });
    const output = Buffer.concat([stdout, stderr]).toString('utf8').slice(0, maxOutput);
    return { result: exitCode === 0 ? 'success' : 'failure', output };
  }
  if (httpGet) {
    const host = httpGet.host || podIp;
    if (!host) throw new Error('the pod has no address');
    const scheme = httpGet.scheme === 'HTTPS' ? 'HTTPS' : 'HTTP';
    const target = { host, port: portOf(httpGet.port, container), scheme, path: httpGet.path ?? '/' } as const;
    const { code, body } = await httpCheck({ ...target, headers: httpGet.httpHeaders ?? [] }, signal);
    if (code >= 200 && code < 400) return { result: 'success', output: body.slice(0, maxOutput) };
    return { result: 'failure', output: `HTTP probe failed with statuscode: ${code}` };
  }
  if (tcpSocket) {
    const host = tcpSocket.host || podIp;
    if (!host) throw new Error('the pod has no address');
    await tcpCheck(host, portOf(tcpSocket.port, container), signal);
    return { result: 'success', output: '' };
  }
  if (grpc) {
    if (!podIp) throw new Error('the pod has no address');
    await grpcCheck({ host: podIp, port: grpc.port, service: grpc.service ?? '' }, signal);
    return { result: 'success', output: '' };
  }
  throw new Error('this kind of probe is not supported');
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
