import { type AgentConfig, UsageError } from '@keelson/agent';
import type { ContainerEngine } from '@keelson/container-runtime';
import type { Logger } from '@keelson/core';
import { serveRuntime } from './runtime-packages.ts';

export interface ServeEngineOptions {
  readonly engine: ContainerEngine;
  /** As {@link criSocketOf} gives it. */
  readonly socketPath: string | undefined;
  readonly logger: Logger;
}

/** Words of the environment that have a say in it. */
export interface CriSocketWords {
  /** `KEELSON_AGENT_CRI_SOCKET`: a path, or nothing for no service. */
  readonly criSocket: string | undefined;
  /** `KEELSON_AGENT_RUNTIME`. */
  readonly runtime: string | undefined;
}

/**
 * Where the engine is served as CRI: at the default of --container-runtime-endpoint, which given by hand would mean a
 * remote runtime. An agent whose runtime the environment chose leaves the place of the machine's own agent alone unless
 * the environment names a place, too.
 *
 * @returns an absolute path; undefined for an agent that serves nothing
 * @throws UsageError for a place that is none, or together with options that leave nothing to serve
 */
export function criSocketOf(
  { runtime: choice, sources }: Pick<AgentConfig, 'runtime' | 'sources'>,
  words: CriSocketWords,
) {
  const { criSocket } = words;
  const own = choice.kind === 'default' || choice.kind === 'engine' ? choice.shimEndpoint : undefined;
  if (criSocket) {
    if (own === undefined)
      throw new UsageError('KEELSON_AGENT_CRI_SOCKET means nothing: the options choose a runtime that is not served');
    if (!criSocket.startsWith('/')) throw new UsageError('KEELSON_AGENT_CRI_SOCKET must be an absolute path');
    return criSocket;
  }
  if (criSocket === '' || words.runtime || sources.runOnce) return undefined;
  return own?.replace(/^unix:\/\//, '');
}

/** Serves the engine if it is to be served. That it cannot be is worth a warning, not the node. */
export async function serveEngine({
  engine,
  socketPath,
  logger,
}: ServeEngineOptions): Promise<AsyncDisposable | undefined> {
  if (socketPath === undefined) return undefined;
  try {
    const service = await serveRuntime({ engine, socketPath, logger: logger.child({ component: 'cri-service' }) });
    logger.info('runtime served as CRI', { socket: socketPath });
    return service;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    logger.warn('runtime not served as CRI, tools such as crictl have nothing to talk to', {
      socket: socketPath,
      reason,
    });
    return undefined;
  }
}
