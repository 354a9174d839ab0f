import { type AgentConfig, UsageError } from '@keelson/agent';
import type { ContainerEngine } from '@keelson/container-runtime';
import type { Logger } from '@keelson/core/runtime';

export interface ServeRuntimeOptions {
  readonly engine: ContainerEngine;
  /** Absolute path of the CRI socket, from {@link criSocketOf}. Undefined: the runtime is not served. */
  readonly socketPath: string | undefined;
  readonly logger: Logger;
}

/** Environment variables that determine the CRI socket. */
export interface CriSocketVariables {
  /** `KEELSON_AGENT_CRI_SOCKET`: an absolute path; empty: the runtime is not served. */
  readonly criSocket: string | undefined;
  /** `KEELSON_AGENT_RUNTIME`. */
  readonly runtime: string | undefined;
}

/**
 * The socket at which the runtime is served as CRI: by default that of --container-runtime-endpoint, an option whose
 * explicit value selects a remote runtime instead. An agent whose runtime is selected by the environment serves it only
 * at a socket from the environment, so that it does not take the default socket of another agent on the machine.
 *
 * @returns an absolute path; undefined when the runtime is not served
 * @throws UsageError for a relative path, and for a variable that contradicts the options
 */
export function criSocketOf(
  { runtime: choice, sources }: Pick<AgentConfig, 'runtime' | 'sources'>,
  { criSocket, runtime }: CriSocketVariables,
): string | undefined {
  const byDefault = choice.kind === 'default' || choice.kind === 'engine' ? choice.shimEndpoint : undefined;
  if (criSocket) {
    if (byDefault === undefined)
      throw new UsageError('KEELSON_AGENT_CRI_SOCKET has no effect: the options select a runtime that is not served');
    if (!criSocket.startsWith('/')) throw new UsageError('KEELSON_AGENT_CRI_SOCKET must be an absolute path');
    return criSocket;
  }
  if (criSocket === '' || runtime || sources.runOnce) return undefined;
  return byDefault?.replace(/^unix:\/\//, '');
}

/** Serves the runtime as CRI. A failure is logged as a warning and does not end the agent. */
export async function serveRuntime({
  engine,
  socketPath,
  logger,
}: ServeRuntimeOptions): Promise<AsyncDisposable | undefined> {
  if (socketPath === undefined) return undefined;
  try {
    const { serveCri } = await import('@keelson/runtime-cri');
    const service = await serveCri({ engine, socketPath, logger: logger.child({ component: 'cri-service' }) });
    logger.info('runtime served as CRI', { socket: socketPath });
    return service;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    logger.warn('runtime not served as CRI, tools such as crictl cannot connect', { socket: socketPath, reason });
    return undefined;
  }
}
