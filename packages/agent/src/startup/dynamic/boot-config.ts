import { UsageError } from '@keelson/core/internal';
import type { Logger } from '@keelson/core/runtime';
import { parseConfigFile } from '../options/config-file.ts';
import type { ParsedOptions } from '../options/parse-options.ts';
import { type HostFacts, type ResolvedConfig, resolveConfig } from '../options/resolve-config.ts';
import { type ConfigId, type ConfigState, ConfigStore, sameConfig, shownConfig } from './config-store.ts';

export interface BootConfigOptions {
  readonly commandLine: ParsedOptions;
  readonly facts: HostFacts;
  readonly logger: Logger;
}

/** The configuration of this start, and the state of dynamic configuration. */
export interface BootedConfig {
  readonly resolved: ResolvedConfig;
  /** Absent without --dynamic-config-dir. */
  readonly dynamic?: DynamicConfig;
}

export interface DynamicConfig {
  readonly store: ConfigStore;
  readonly state: ConfigState;
  /** The text of the downloaded configuration in use; undefined when the local configuration is used. */
  readonly text: string | undefined;
  /** @throws UsageError for a text that the agent cannot run with */
  readonly check: (text: string) => void;
}

/** Number of starts after which a configuration that has not passed its trial is rejected. */
export const maxTrialStarts = 10;

/**
 * Selects the configuration of this start. With --dynamic-config-dir, the configuration that was downloaded last
 * replaces the file of --config. When it is invalid, the last known good configuration is used, else the local one.
 *
 * @throws UsageError when the local configuration is invalid
 */
export async function bootConfig({ commandLine, facts, logger }: BootConfigOptions): Promise<BootedConfig> {
  const local = resolveConfig(commandLine, facts);
  const dir = local.values['dynamic-config-dir'];
  if (dir === '' || local.values.runonce) return { resolved: local };
  if (local.config.api === undefined) {
    throw new UsageError(
      '--dynamic-config-dir needs --clusterconfig, which specifies the API server with the configurations',
    );
  }
  const store = new ConfigStore(dir);
  const resolve = (text: Buffer | string, source: string): ResolvedConfig => {
    const values = parseConfigFile(Buffer.from(text), source);
    if (values.has('dynamic-config-dir')) throw new UsageError(`${source}: dynamicConfigDir cannot be downloaded`);
    return resolveConfig(commandLine, facts, values);
  };
  const check = (text: string) => void resolve(text, 'the configuration');

  /** Selects the first configuration of the state that is valid; the returned state refers to it. */
  async function choose(
    state: ConfigState,
  ): Promise<{ state: ConfigState; resolved: ResolvedConfig; text: string | undefined }> {
    const { current, trial } = state;
    if (current === undefined) return { state, resolved: local, text: undefined };
    try {
      if (trial !== undefined && trial.starts >= maxTrialStarts) {
        throw new UsageError(`the configuration did not pass its trial in ${maxTrialStarts} starts`);
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
    logger.warn('the state of downloaded configurations cannot be read and is discarded', { dir, err: error });
    return {};
  });
  const { state, resolved, text } = await choose(before);
  if (state !== before) await store.write(state);
  return { resolved, dynamic: { store, state, text, check } };
}

function rolledBack({ lastKnownGood, refused }: ConfigState, current: ConfigId, problem: string): ConfigState {
  const good = sameConfig(lastKnownGood, current) ? undefined : lastKnownGood;
  // The condition of the node reports the configuration that was assigned last, which is the first one rejected here.
  const reported = refused ?? { of: current, problem };
  return good === undefined ? { refused: reported } : { current: good, lastKnownGood: good, refused: reported };
}
