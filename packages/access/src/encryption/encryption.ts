import type { KindDefinition } from '@keelson/core';
import { encryptedPrefix, UsageError } from '@keelson/core/internal';
import type { Clock, Labels, Logger, Metrics } from '@keelson/core/runtime';
import type { Store } from '@keelson/core/storage-adapter';
import { WatchedFile } from '../authentication/watched-file.ts';
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

const option = '--encryption-provider-config';

/** The encryption of the stores of a control plane. The configuration file is read again when it changes. */
export class Encryption {
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #observer: ValueObserver;
  readonly #file: WatchedFile<EncryptionConfig>;
  readonly #stores = new Map<string, EncryptedStore>();
  readonly #rotations = new Map<string, Rotation>();

  private constructor({ clock, logger, metrics }: EncryptionOptions, file: WatchedFile<EncryptionConfig>) {
    this.#clock = clock;
    this.#logger = logger.child({ component: 'encryption' });
    this.#observer = observedBy(metrics);
    this.#file = file;
  }

  /** @throws UsageError when the file cannot be read or is invalid */
  static async open(options: EncryptionOptions): Promise<Encryption> {
    const { configFile: path, kinds, clock, logger, metrics } = options;
    const source = `${option} ${path}`;
    const reloads = metrics.counter({
      name: 'apiserver_encryption_config_controller_automatic_reloads_total',
      help: 'Total number of reload successes and failures of encryption configuration split by status.',
      labels: ['status'],
    });
    let encryption: Encryption | undefined;
    const parse = (bytes: Buffer) => {
      try {
        return parsed(bytes, kinds, source);
      } catch (error) {
        if (encryption !== undefined) reloads.add(1, { status: 'failure' });
        throw error;
      }
    };
    const onChange = (config: EncryptionConfig) => {
      reloads.add(1, { status: 'success' });
      if (encryption === undefined) return;
      for (const store of encryption.#stores.values()) store.reconfigure(config);
    };
    const file = await WatchedFile.open({ source, path, parse, onChange, secret: true, clock, logger });
    encryption = new Encryption(options, file);
    return encryption;
  }

  /** Encrypts a store. @param name of the store in reports */
  wrap(name: string, store: Store): Store {
    const encrypted = new EncryptedStore(store, this.#file.value, this.#observer);
    this.#stores.set(name, encrypted);
    return encrypted;
  }

  /** Ends rotations and the checks of the file. */
  async stop(): Promise<void> {
    this.#file.stop();
    await Promise.all([...this.#rotations.values()].map((rotation) => rotation.stop()));
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
      const rotation = new Rotation(store, this.#clock);
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
}

function parsed(bytes: Buffer, kinds: readonly KindDefinition[], source: string): EncryptionConfig {
  try {
    return parseEncryptionConfig(bytes, kinds, source);
  } catch (error) {
    // The text of a parser may contain the line with the error, and with it a secret.
    if (error instanceof UsageError && error.message.includes('is not valid YAML'))
      throw new UsageError(`${source} is not valid YAML`);
    throw error;
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
