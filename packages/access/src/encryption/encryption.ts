import { readFile, stat } from 'node:fs/promises';
import type { KindDefinition } from '@keelson/core';
import { encryptedPrefix, UsageError } from '@keelson/core/internal';
import type { Clock, Counter, Labels, Logger, Metrics } from '@keelson/core/runtime';
import type { Store } from '@keelson/core/storage-adapter';
import { readConfigFile } from '../read-config.ts';
import { EncryptedStore, type ValueObserver } from './encrypted-store.ts';
import { type EncryptionConfig, parseEncryptionConfig } from './encryption-config.ts';
import { Rotation, type RotationProgress, type StoredResource, storedResources } from './rotation.ts';

export interface EncryptionOptions {
  /** File with an EncryptionConfiguration. */
  readonly configFile: string;
  /** The served kinds. */
  readonly kinds: readonly KindDefinition[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly metrics: Metrics;
}

/** Interval at which the file is checked for changes, in milliseconds. */
export const reloadMs = 10_000;
const option = '--encryption-provider-config';
const othersMayRead = 0o077;

/** The encryption of the stores of a plane. The configuration file is read again when it changes. */
export class Encryption {
  readonly #options: EncryptionOptions;
  readonly #logger: Logger;
  readonly #reloads: Counter;
  readonly #observer: ValueObserver;
  readonly #stores = new Map<string, EncryptedStore>();
  readonly #rotations = new Map<string, Rotation>();
  #config: EncryptionConfig;
  #bytes: Buffer;
  #problem = '';
  #cancel: (() => void) | undefined;
  #stopped = false;

  private constructor(options: EncryptionOptions, bytes: Buffer) {
    this.#options = options;
    this.#logger = options.logger.child({ component: 'encryption' });
    this.#bytes = bytes;
    this.#config = this.#parsed(bytes);
    this.#observer = observedBy(options.metrics);
    this.#reloads = options.metrics.counter({
      name: 'apiserver_encryption_config_controller_automatic_reloads_total',
      help: 'Total number of reload successes and failures of encryption configuration split by status.',
      labels: ['status'],
    });
  }

  /** @throws UsageError when the file cannot be read or is invalid */
  static async open(options: EncryptionOptions): Promise<Encryption> {
    const { configFile, logger } = options;
    const encryption = new Encryption(options, await readConfigFile(configFile, option));
    const { mode } = await stat(configFile);
    if ((mode & othersMayRead) !== 0)
      logger.warn('the file with encryption keys is accessible to other users; restrict it with chmod 600', {
        path: configFile,
      });
    return encryption;
  }

  /** Encrypts a store. @param name of the store in reports */
  wrap(name: string, store: Store): Store {
    const encrypted = new EncryptedStore(store, this.#config, this.#observer);
    this.#stores.set(name, encrypted);
    return encrypted;
  }

  /** Begins to check the file for changes. */
  start(): void {
    if (!this.#stopped) this.#cancel = this.#options.clock.after(reloadMs, () => void this.reload());
  }

  /** Ends rotations and the checks of the file. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel?.();
    await Promise.all([...this.#rotations.values()].map((rotation) => rotation.stop()));
  }

  /** Reads the file. An invalid one is reported, and the previous configuration remains in use. */
  async reload(): Promise<void> {
    try {
      const bytes = await readFile(this.#options.configFile);
      if (!bytes.equals(this.#bytes)) {
        this.#config = this.#parsed(bytes);
        this.#bytes = bytes;
        for (const store of this.#stores.values()) store.reconfigure(this.#config);
        this.#reloads.add(1, { status: 'success' });
        this.#logger.info('the encryption configuration was changed');
      }
      this.#problem = '';
    } catch (error) {
      const { message } = error as Error;
      if (message !== this.#problem) {
        this.#reloads.add(1, { status: 'failure' });
        this.#logger.error('the changed encryption configuration is not used', { problem: message });
      }
      this.#problem = message;
    }
    this.start();
  }

  /** How the objects of every store are stored. */
  async report(): Promise<{ readonly store: string; readonly resources: StoredResource[] }[]> {
    return Promise.all(
      [...this.#stores].map(async ([store, encrypted]) => ({ store, resources: await storedResources(encrypted) })),
    );
  }

  /** Starts a rotation of every store, except where one is running. */
  rotate(): void {
    for (const [name, store] of this.#stores) {
      if (this.#rotations.get(name)?.progress.state === 'running') continue;
      const rotation = new Rotation(store, this.#options.clock);
      this.#rotations.set(name, rotation);
      void rotation.ended.then(() => {
        const { state, ...progress } = rotation.progress;
        this.#logger[state === 'done' ? 'info' : 'error']('the rotation of keys has ended', {
          store: name,
          ...progress,
        });
      });
    }
  }

  /** The progress of the last rotation of every store. */
  rotations(): (RotationProgress & { readonly store: string })[] {
    return [...this.#rotations].map(([store, rotation]) => ({ store, ...rotation.progress }));
  }

  #parsed(bytes: Buffer): EncryptionConfig {
    const { configFile, kinds } = this.#options;
    const source = `${option} ${configFile}`;
    try {
      return parseEncryptionConfig(bytes, kinds, source);
    } catch (error) {
      // The text of a parser may contain the line with the error, and with it a secret.
      if (error instanceof UsageError && error.message.includes('is not valid YAML'))
        throw new UsageError(`${source} is not valid YAML`);
      throw error;
    }
  }
}

function observedBy(metrics: Metrics): ValueObserver {
  const operations = metrics.counter({
    name: 'apiserver_storage_transformation_operations_total',
    help: 'Total number of transformations.',
    labels: ['transformation_type', 'transformer_prefix', 'status'],
  });
  const labels = (type: string, status: string): Labels => ({
    transformation_type: type,
    transformer_prefix: encryptedPrefix,
    status,
  });
  const sealed = labels('to_storage', 'OK');
  const opened = labels('from_storage', 'OK');
  const failed = labels('from_storage', 'Internal');
  return {
    sealed: () => operations.add(1, sealed),
    opened: (ok) => operations.add(1, ok ? opened : failed),
  };
}
