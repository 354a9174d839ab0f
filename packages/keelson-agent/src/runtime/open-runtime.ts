import { MachineError, type RuntimeChoice } from '@keelson/agent';
import { type ContainerEngine, isRuntimeError } from '@keelson/container-runtime';
import { retireSupervisor } from '../supervisor/end-supervisor.ts';
import { openSupervised } from '../supervisor/open-supervised.ts';
import type { Supervised } from '../supervisor/supervisor-options.ts';
import { findRuntime, rememberRuntime } from './detect-runtime.ts';
import { findBinary, probeEngine, probeOci } from './probe-runtimes.ts';
import { openCri, openDockerEngine, openOci, openProcess, type RuntimeSurroundings } from './runtime-packages.ts';
import { choiceOf } from './runtime-request.ts';

export interface OpenEngineOptions extends RuntimeSurroundings {
  /** In place of that of the configuration. */
  readonly choice?: RuntimeChoice;
}

type Definite = Exclude<RuntimeChoice, { kind: 'default' }>;

/** Binaries that are taken without being named. */
const ociBinaries = ['runc'];

/**
 * Opens the runtime that the options select, and logs which one and why: see
 * docs/reference/agent-rules.md#choice-of-the-runtime.
 *
 * @throws MachineError when what was asked for is not there
 */
export async function openEngine(options: OpenEngineOptions): Promise<ContainerEngine> {
  const { config, clock, logger } = options;
  const choice = options.choice ?? config.runtime;
  // Two engines on the same containers must not be.
  if (!isSupervised(choice)) await retireSupervisor(config.rootDir, clock, logger);
  if (choice.kind === 'default') return openFound(options, choice.engineEndpoint);
  logger.info('runtime chosen', { runtime: choice.kind, reason: 'it was asked for' });
  return open(options, choice);
}

async function openFound(options: OpenEngineOptions, engineEndpoint: string): Promise<ContainerEngine> {
  const { config, logger } = options;
  const found = await findRuntime(config.rootDir, {
    engine: () => probeEngine(engineEndpoint),
    oci: () => probeOci(process.getuid?.(), findBinary(ociBinaries)),
  });
  let { name, reason } = found;
  let engine: ContainerEngine;
  try {
    engine = await open(options, choiceOf(name, engineEndpoint));
  } catch (error) {
    // A binary that answers may still not be able to run anything here. Pods that it ran before are not left alone for
    // that.
    if (name !== 'oci' || found.again || !(error instanceof MachineError)) throw error;
    name = 'process';
    reason = `${reason}, but ${error.message}`;
    engine = await open(options, choiceOf(name, engineEndpoint));
  }
  logger.info('runtime chosen', { runtime: name, reason });
  await rememberRuntime(config.rootDir, name);
  return engine;
}

async function open(options: OpenEngineOptions, choice: Definite): Promise<ContainerEngine> {
  try {
    return await openChoice(options, choice);
  } catch (error) {
    if (isRuntimeError(error, 'Unsupported'))
      throw new MachineError(`the runtime ${choice.kind} cannot be used: ${error.message}`);
    throw error;
  }
}

function isSupervised(choice: RuntimeChoice): choice is Supervised {
  return choice.kind === 'oci' && choice.supervisorEndpoint !== undefined;
}

function openChoice(options: OpenEngineOptions, choice: Definite): Promise<ContainerEngine> {
  switch (choice.kind) {
    case 'process':
      return openProcess(options);
    case 'engine':
      return openDockerEngine(options, choice);
    case 'cri':
      return openCri(options, choice);
    case 'oci':
      return isSupervised(choice) ? openSupervised(options, choice) : openOci(options, choice);
  }
}
