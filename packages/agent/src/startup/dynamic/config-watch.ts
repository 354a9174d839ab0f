import type { ApiClient, Clock, Logger } from '@keelson/core';
import { ConfigMap, Node } from '@keelson/kinds';
import { Repeater } from '../../base/repeater.ts';
import { UsageError } from '../../base/usage-error.ts';
import type { DynamicConfig } from './boot-config.ts';
import { type ConfigId, type ConfigState, sameConfig, shownConfig } from './config-store.ts';

export interface ConfigWatchOptions {
  readonly dynamic: DynamicConfig;
  readonly api: Pick<ApiClient, 'resource'>;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** 0..1; default: the machine's. */
  readonly random?: () => number;
}

/** What the node's status says of its configuration. */
export interface ConfigCondition {
  readonly type: 'ConfigOK';
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

/** See docs/reference/agent-rules.md#periods-and-limits. */
const periodMs = 10_000;
const trialMs = 600_000;

/** Something is wrong with what the node names, which may be right the next time. */
class SourceProblem extends Error {}

function withoutRefusal({ refused: _, ...rest }: ConfigState): ConfigState {
  return rest;
}

/**
 * Looks which configuration the node's `spec.configSource` names, keeps it for the next start, and says when that is
 * due. One that is in use for the time of a trial is what later ones fall back to.
 */
export class ConfigWatch {
  readonly #options: ConfigWatchOptions;
  readonly #repeater: Repeater;
  #state: ConfigState;
  #problem: string | undefined;
  /** The trial is over; the next look writes that down, so that two do not write at once. */
  #passed = false;
  #ended = false;
  #cancelTrial: (() => void) | undefined;
  #restart: () => void = () => {};
  /** Resolves when another configuration is to be taken, which a start does. */
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
      // Many nodes may name one config map.
      periodMs: periodMs * (0.8 + 0.4 * random()),
      what: 'looking for the configuration of the node',
      run: () => this.#look(),
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
    const used = current === undefined ? 'the configuration of the machine' : shownConfig(current);
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
    this.#passed = true;
    this.#repeater.now();
  }

  async #look(): Promise<void> {
    // What is kept now is for the next start.
    if (this.#ended) return;
    if (this.#passed && this.#state.trial !== undefined && this.#state.current !== undefined) {
      const { trial: _, ...rest } = this.#state;
      await this.#write({ ...rest, lastKnownGood: this.#state.current });
      this.#options.logger.info('the configuration passed its trial', { config: shownConfig(this.#state.current) });
    }
    try {
      await this.#follow();
      this.#problem = undefined;
    } catch (error) {
      if (!(error instanceof SourceProblem)) throw error;
      this.#problem = error.message;
    }
  }

  async #follow(): Promise<void> {
    const found = await this.#wanted();
    const { current, refused } = this.#state;
    if (found === undefined) {
      if (current !== undefined || refused !== undefined) await this.#write({});
      if (this.#options.dynamic.text !== undefined) this.#end('the node names no configuration any more');
      return;
    }
    const { id, text } = found;
    if (sameConfig(id, refused?.of)) return;
    if (sameConfig(id, current)) {
      if (refused !== undefined) await this.#write(withoutRefusal(this.#state));
      return;
    }
    await this.#take(id, text);
  }

  async #take(id: ConfigId, text: string): Promise<void> {
    const { dynamic, logger } = this.#options;
    try {
      dynamic.check(text);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      logger.warn('a configuration is refused', { config: shownConfig(id), problem: error.message });
      return this.#write({ ...this.#state, refused: { of: id, problem: error.message } });
    }
    await dynamic.store.save(id, text);
    if (text === dynamic.text) {
      // The same words under another name need no restart.
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
    this.#end(`the node names ${shownConfig(id)}`);
  }

  /** What the node names; undefined when it names nothing. @throws SourceProblem */
  async #wanted(): Promise<{ readonly id: ConfigId; readonly text: string } | undefined> {
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
        throw new SourceProblem(`${label} cannot be had: ${(error as Error).message}`);
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

  #end(why: string): void {
    this.#ended = true;
    this.#options.logger.info('the agent ends to take another configuration when it is started again', { why });
    this.#restart();
  }
}
