import { join } from 'node:path';
import type { ContainerEngine } from '@keelson/container-runtime';
import type { Clock, Logger } from '@keelson/core';
import type { AgentConfig, RuntimeChoice } from '../contracts/agent-config.ts';
import { UsageError } from '../options/usage-error.ts';
import { findRuntime } from './find-runtime.ts';
import { choiceOf } from './runtime-given.ts';

export interface OpenEngineOptions {
  readonly config: AgentConfig;
  /** In place of that of the configuration. */
  readonly choice?: RuntimeChoice;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The part of a runtime's package that is used here. Packages are loaded by name, when they are chosen. */
interface ProcessRuntimePackage {
  createProcessRuntime(options: {
    readonly stateDirectory: string;
    readonly imageSources: readonly string[];
    readonly registries: object;
    readonly nodeIp?: string;
    readonly clock: Clock;
    readonly logger: Logger;
  }): Promise<ContainerEngine>;
}

const processPackage: string = '@keelson/runtime-process';

/** Without cgroups: the options that place and bound them are not yet supported, so limits have no effect and the node stays untouched. */
async function processEngine({ config, clock, logger }: OpenEngineOptions): Promise<ContainerEngine> {
  const { createProcessRuntime } = (await import(processPackage)) as ProcessRuntimePackage;
  return createProcessRuntime({
    stateDirectory: join(config.rootDir, 'runtime'),
    imageSources: [join(config.rootDir, 'images')],
    registries: {},
    ...(config.node.ip === undefined ? {} : { nodeIp: config.node.ip }),
    clock,
    logger: logger.child({ component: 'runtime-process' }),
  });
}

const notHere = { usable: false, reason: 'not supported yet' };

/**
 * Opens the runtime that the options choose (agent.md C.3), and says in one line which it is and why.
 *
 * @throws UsageError for a choice that cannot be kept
 */
export async function openEngine(options: OpenEngineOptions): Promise<ContainerEngine> {
  const { config, logger } = options;
  const choice = options.choice ?? config.runtime;
  if (choice.kind !== 'default') {
    logger.info('runtime chosen', { runtime: choice.kind, reason: 'it was asked for' });
    return openChoice(options, choice);
  }
  const { name, reason } = await findRuntime(config.rootDir, {
    engine: async () => notHere,
    oci: async () => notHere,
  });
  logger.info('runtime chosen', { runtime: name, reason });
  return openChoice(options, choiceOf(name, choice.engineEndpoint));
}

async function openChoice(
  options: OpenEngineOptions,
  choice: Exclude<RuntimeChoice, { kind: 'default' }>,
): Promise<ContainerEngine> {
  switch (choice.kind) {
    case 'process':
      return processEngine(options);
    case 'engine':
      throw new UsageError('--runtime-a-endpoint: engines behind a socket are not yet supported; leave the option out');
    case 'cri':
      throw new UsageError('--container-runtime-endpoint: remote runtimes are not yet supported; leave the option out');
    case 'oci':
      throw new UsageError('--container-runtime=runtime-b is not yet supported; leave the option out');
  }
}
