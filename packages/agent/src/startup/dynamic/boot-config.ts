import type { Logger } from '@keelson/core';
import { UsageError } from '../../base/usage-error.ts';
import { parseConfigFile } from '../options/config-file.ts';
import type { ParsedOptions } from '../options/parse-options.ts';
import { type HostFacts, type ResolvedConfig, resolveConfig } from '../options/resolve-config.ts';
import { type ConfigId, type ConfigState, ConfigStore, sameConfig, shownConfig } from './config-store.ts';

export interface BootConfigOptions {
  readonly commandLine: ParsedOptions;
  readonly facts: HostFacts;
  readonly logger: Logger;
}

/** The configuration to start with, and what has to be known to take others. */
export interface BootedConfig {
  readonly resolved: ResolvedConfig;
  /** Absent without --dynamic-config-dir. */
  readonly dynamic?: DynamicConfig;
}

export interface DynamicConfig {
  readonly store: ConfigStore;
  readonly state: ConfigState;
  /** The text in use; undefined: that of the command line and its file. */
  readonly text: string | undefined;
  /** @throws UsageError for a text that the agent cannot run with */
  readonly check: (text: string) => void;
}

/** An agent that did not last through a trial in so many starts never will. */
export const maxTrialStarts = 10;

/**
 * Makes the configuration of this start: with --dynamic-config-dir that which was downloaded last, in place of the file
 * of --config; when the agent cannot run with it, the last that was known to be good, else what stands on this machine.
 *
 * @throws UsageError when what stands on this machine is wrong
 */
export async function bootConfig({ commandLine, facts, logger }: BootConfigOptions): Promise<BootedConfig> {
  const local = resolveConfig(commandLine, facts);
  const dir = local.values['dynamic-config-dir'];
  if (dir === '' || local.values.runonce) return { resolved: local };
  if (local.config.api === undefined) {
    throw new UsageError(
      '--dynamic-config-dir needs --clusterconfig, which says where the API server is that has the configurations',
    );
  }
  const store = new ConfigStore(dir);
  const resolve = (text: Buffer | string, source: string): ResolvedConfig => {
    const values = parseConfigFile(Buffer.from(text), source);
    if (values.has('dynamic-config-dir')) throw new UsageError(`${source}: dynamicConfigDir cannot be downloaded`);
    return resolveConfig(commandLine, facts, values);
  };
  const check = (text: string) => void resolve(text, 'the configuration');

  /** The first of the state's configurations with which the agent can run; the state says which. */
  async function choose(
    state: ConfigState,
  ): Promise<{ state: ConfigState; resolved: ResolvedConfig; text: string | undefined }> {
    const { current, trial } = state;
    if (current === undefined) return { state, resolved: local, text: undefined };
    try {
      if (trial !== undefined && trial.starts >= maxTrialStarts) {
        throw new UsageError(`the agent did not last through the trial in ${maxTrialStarts} starts`);
      }
      const text = (await store.load(current)).toString();
      const resolved = resolve(text, shownConfig(current));
      return { state: trial === undefined ? state : { ...state, trial: { starts: trial.starts + 1 } }, resolved, text };
    } catch (error) {
      const problem = (error as Error).message;
      logger.warn('the downloaded configuration is not used', { config: shownConfig(current), problem });
      return choose(rolledBack(state, current, problem));
    }
  }

  const before = await store.read().catch((error: unknown): ConfigState => {
    logger.warn('what is known of downloaded configurations cannot be read; they are forgotten', { dir, err: error });
    return {};
  });
  const { state, resolved, text } = await choose(before);
  if (state !== before) await store.write(state);
  return { resolved, dynamic: { store, state, text, check } };
}

function rolledBack({ lastKnownGood, refused }: ConfigState, current: ConfigId, problem: string): ConfigState {
  const good = sameConfig(lastKnownGood, current) ? undefined : lastKnownGood;
  // What was wanted last is what people look for.
  const told = refused ?? { of: current, problem };
  return good === undefined ? { refused: told } : { current: good, lastKnownGood: good, refused: told };
}
