import type { ApiClient } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';
import type { Clock, Logger } from '@keelson/core/runtime';
import { ConfigMap, Node } from '@keelson/kinds';
import { Repeater } from '../../base/repeater.ts';
import type { DynamicConfig } from './boot-config.ts';
import { type ConfigId, type ConfigState, sameConfig, shownConfig } from './config-store.ts';

export interface ConfigWatchOptions {
  readonly dynamic: DynamicConfig;
  readonly api: Pick<ApiClient, 'resource'>;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Returns a number in [0, 1). Default: `Math.random`. */
  readonly random?: () => number;
}

/** The condition of the node that reports its configuration. */
export interface ConfigCondition {
  readonly type: 'ConfigOK';
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

/** See docs/reference/agent-rules.md#periods-and-limits. */
const periodMs = 10_000;
const trialMs = 600_000;

/** The config map that the node refers to cannot be used; a later poll may succeed. */
class SourceProblem extends Error {}

function withoutRefusal({ refused: _, ...rest }: ConfigState): ConfigState {
  return rest;
}

/**
 * Polls the node's `spec.configSource`, saves the configuration that it refers to for the next start, and requests that
 * start. A configuration that has been in use for the duration of a trial becomes the last known good one, which is
 * used when later ones are invalid.
 */
export class ConfigWatch {
  readonly #options: ConfigWatchOptions;
  readonly #repeater: Repeater;
  #state: ConfigState;
  #problem: string | undefined;
  /** True after the trial; the next poll saves the result, so that two writes are not concurrent. */
  #trialPassed = false;
  #restartRequested = false;
  #cancelTrial: (() => void) | undefined;
  #restart: () => void = () => {};
  /** Resolves when the agent must be restarted to use another configuration. */
  readonly restart: Promise<void>;

  constructor(options: ConfigWatchOptions) {
    const { clock, logger, random = Math.random } = options;
    this.#options = options;
    this.#state = options.dynamic.state;
    this.restart = new Promise((resolve) => {
      this.#restart = resolve;
    });
    this.#repeater = new Repeater({
      clock,
      logger,
      // The random period spreads the requests of nodes that refer to the same config map.
      periodMs: periodMs * (0.8 + 0.4 * random()),
      what: 'reading the configuration of the node',
      run: () => this.#poll(),
    });
  }

  start(): void {
    this.#repeater.start();
    if (this.#state.trial !== undefined) this.#cancelTrial = this.#options.clock.after(trialMs, () => this.#pass());
  }

  async stop(): Promise<void> {
    this.#cancelTrial?.();
    await this.#repeater.stop();
  }

  condition(): ConfigCondition {
    const { current, trial, refused } = this.#state;
    const used = current === undefined ? 'the local configuration' : shownConfig(current);
    const using = `using ${used}${trial === undefined ? '' : ', on trial'}`;
    const type = 'ConfigOK';
    if (this.#problem !== undefined) {
      return { type, status: 'False', reason: 'ConfigNotFound', message: `${using}; ${this.#problem}` };
    }
    if (refused !== undefined) {
      const message = `${using}; not ${shownConfig(refused.of)}: ${refused.problem}`;
      return { type, status: 'False', reason: 'ConfigRefused', message };
    }
    return { type, status: 'True', reason: current === undefined ? 'LocalConfig' : 'AssignedConfig', message: using };
  }

  #pass(): void {
    this.#trialPassed = true;
    this.#repeater.now();
  }

  async #poll(): Promise<void> {
    // The saved configuration must not change before the restart.
    if (this.#restartRequested) return;
    if (this.#trialPassed && this.#state.trial !== undefined && this.#state.current !== undefined) {
      const { trial: _, ...rest } = this.#state;
      await this.#write({ ...rest, lastKnownGood: this.#state.current });
      this.#options.logger.info('the configuration passed its trial', { config: shownConfig(this.#state.current) });
    }
    try {
      await this.#reconcile();
      this.#problem = undefined;
    } catch (error) {
      if (!(error instanceof SourceProblem)) throw error;
      this.#problem = error.message;
    }
  }

  async #reconcile(): Promise<void> {
    const assigned = await this.#assigned();
    const { current, refused } = this.#state;
    if (assigned === undefined) {
      if (current !== undefined || refused !== undefined) await this.#write({});
      if (this.#options.dynamic.text !== undefined)
        this.#requestRestart('the node no longer refers to a configuration');
      return;
    }
    const { id, text } = assigned;
    if (sameConfig(id, refused?.of)) return;
    if (sameConfig(id, current)) {
      if (refused !== undefined) await this.#write(withoutRefusal(this.#state));
      return;
    }
    await this.#accept(id, text);
  }

  async #accept(id: ConfigId, text: string): Promise<void> {
    const { dynamic, logger } = this.#options;
    try {
      dynamic.check(text);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      logger.warn('the assigned configuration is rejected', { config: shownConfig(id), problem: error.message });
      return this.#write({ ...this.#state, refused: { of: id, problem: error.message } });
    }
    await dynamic.store.save(id, text);
    if (text === dynamic.text) {
      // The same text under another identity does not need a restart.
      const { lastKnownGood, current } = this.#state;
      const good = sameConfig(lastKnownGood, current) ? id : lastKnownGood;
      return this.#write({
        ...withoutRefusal(this.#state),
        current: id,
        ...(good === undefined ? {} : { lastKnownGood: good }),
      });
    }
    const { lastKnownGood } = this.#state;
    await this.#write({ current: id, trial: { starts: 0 }, ...(lastKnownGood === undefined ? {} : { lastKnownGood }) });
    this.#requestRestart(`the node refers to ${shownConfig(id)}`);
  }

  /**
   * Reads the configuration that the node refers to; returns undefined when it refers to none.
   *
   * @throws SourceProblem when the reference or the config map cannot be used
   */
  async #assigned(): Promise<{ readonly id: ConfigId; readonly text: string } | undefined> {
    const { api, nodeName } = this.#options;
    const { spec } = await api.resource(Node).get(nodeName, { resourceVersion: '0' });
    if (spec?.configSource === undefined) return undefined;
    const {
      namespace = '',
      name = '',
      uid: wantedUid = '',
      kubeletConfigKey: key = '',
    } = spec.configSource.configMap ?? {};
    if (namespace === '' || name === '' || key === '') {
      throw new SourceProblem('spec.configSource.configMap needs namespace, name and kubeletConfigKey');
    }
    const label = `config map ${namespace}/${name}`;
    const { metadata, data = {} } = await api
      .resource(ConfigMap)
      .namespace(namespace)
      .get(name)
      .catch((error: unknown) => {
        throw new SourceProblem(`${label} cannot be read: ${(error as Error).message}`);
      });
    const { uid = '', resourceVersion = '' } = metadata ?? {};
    if (wantedUid !== '' && wantedUid !== uid) throw new SourceProblem(`${label} has the uid ${uid}, not ${wantedUid}`);
    const text = data[key];
    if (text === undefined) throw new SourceProblem(`${label} has no key ${key}`);
    return { id: { namespace, name, uid, resourceVersion, key }, text };
  }

  async #write(state: ConfigState): Promise<void> {
    await this.#options.dynamic.store.write(state);
    this.#state = state;
  }

  #requestRestart(reason: string): void {
    this.#restartRequested = true;
    this.#options.logger.info('the agent ends and uses another configuration after its restart', { reason });
    this.#restart();
  }
}
