import { type FSWatcher, watch } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readIfPresent } from '@keelson/container-host';
import { type ContainerConfig, isRuntimeError, type PodSandboxConfig, RuntimeError } from '@keelson/container-runtime';
import type { Logger } from '@keelson/core/runtime';
import { isId } from '../state/state-directory.ts';
import type { ContainerContext } from './container-context.ts';
import type { MonitoredContainer } from './monitored-container.ts';
import { MonitoredSandbox } from './monitored-sandbox.ts';

export interface InventoryParts<S extends MonitoredSandbox<C>, C extends MonitoredContainer> {
  readonly around: ContainerContext;
  readonly logger: Logger;
  /** Interval at which all state is read again, in case file events were missed. */
  readonly relistPeriodMs: number;
  /** Creates the object for a record in the state directory. */
  sandbox(record: S['record'], ready: boolean): S;
  container(record: C['record'], sandbox: S | undefined): C;
}

/**
 * All sandboxes and containers of a state directory. File events and, in case they are missed, a periodic poll update
 * them.
 */
export class Inventory<S extends MonitoredSandbox<C>, C extends MonitoredContainer> {
  readonly sandboxes = new Map<string, S>();
  readonly containers = new Map<string, C>();
  readonly #parts: InventoryParts<S, C>;
  /** Identities of the sandboxes and containers that exist or are being created. */
  readonly #identities = new Set<string>();
  #watcher: FSWatcher | undefined;
  #cancelRelist = () => {};
  #closed = false;

  constructor(parts: InventoryParts<S, C>) {
    this.#parts = parts;
  }

  /** Reads the state directory. After a reboot no process is running, so all sandboxes are stopped. */
  async load(rebooted: boolean): Promise<void> {
    const { around } = this.#parts;
    const { state } = around;
    for (const name of await readdir(state.sandboxes)) {
      const id = name.replace(/\.json$/, '');
      const record = isId(id) ? await readRecord<S['record']>(join(state.sandboxes, name)) : undefined;
      if (record === undefined) continue;
      const sandbox = this.#parts.sandbox(record, !(await MonitoredSandbox.wasStopped(around, id)));
      this.#enterSandbox(sandbox);
      if (rebooted) await sandbox.stop();
    }
    for (const id of await readdir(state.containers)) {
      const record = isId(id) ? await readRecord<C['record']>(join(state.containers, id, 'record.json')) : undefined;
      if (record === undefined) continue;
      const sandbox = this.sandboxes.get(record.sandboxId);
      const container = this.#parts.container(record, sandbox);
      await container.loadResources();
      // The runtime was interrupted during the removal of the sandbox.
      if (sandbox === undefined) await container.remove();
      else this.#enterContainer(sandbox, container);
      await container.refresh();
    }
    this.#watch();
    this.#relistLater();
  }

  /** Reserves the identity of a sandbox until it is released. @throws `AlreadyExists` */
  claimSandbox({ metadata }: PodSandboxConfig): string {
    const { uid, name, namespace, attempt } = metadata;
    return this.#claim(
      JSON.stringify([uid, namespace, name, attempt]),
      `sandbox of pod "${namespace}/${name}", attempt ${attempt}`,
    );
  }

  /** Reserves the identity of a container until it is released. @throws `AlreadyExists` */
  claimContainer(sandboxId: string, { metadata }: ContainerConfig): string {
    const { name, attempt } = metadata;
    return this.#claim(JSON.stringify([sandboxId, name, attempt]), `container "${name}", attempt ${attempt},`);
  }

  release(identity: string): void {
    this.#identities.delete(identity);
  }

  addSandbox(sandbox: S): void {
    this.sandboxes.set(sandbox.id, sandbox);
  }

  addContainer(sandbox: S, container: C): void {
    sandbox.containers.add(container);
    this.containers.set(container.id, container);
  }

  forgetContainer(container: C): void {
    const { sandboxId, config } = container.record;
    this.sandboxes.get(sandboxId)?.containers.delete(container);
    if (this.containers.delete(container.id))
      this.release(JSON.stringify([sandboxId, config.metadata.name, config.metadata.attempt]));
  }

  forgetSandbox(sandbox: S): void {
    const { uid, name, namespace, attempt } = sandbox.record.config.metadata;
    for (const container of [...sandbox.containers]) this.forgetContainer(container);
    if (this.sandboxes.delete(sandbox.id)) this.release(JSON.stringify([uid, namespace, name, attempt]));
  }

  /** Reads the state of all containers. */
  async refreshAll(): Promise<void> {
    await Promise.all([...this.containers.values()].map((container) => this.#refresh(container)));
  }

  /**
   * Ensures that a log keeper is running while a container may write output. Without a keeper, a container blocks once
   * its pipe is full.
   */
  async keepLogs(): Promise<void> {
    if (![...this.containers.values()].some((container) => container.isActive)) return;
    const { around, logger, relistPeriodMs } = this.#parts;
    try {
      await around.keeper.ensure();
    } catch (error) {
      if (!isRuntimeError(error, 'Unavailable')) throw error;
      logger.error('failed to start the log keeper', { err: error });
      around.clock.after(relistPeriodMs, () => void this.keepLogs());
    }
  }

  close(): void {
    this.#closed = true;
    this.#watcher?.close();
    this.#cancelRelist();
  }

  #enterSandbox(sandbox: S): void {
    this.claimSandbox(sandbox.record.config);
    this.addSandbox(sandbox);
  }

  #enterContainer(sandbox: S, container: C): void {
    this.claimContainer(sandbox.id, container.record.config);
    this.addContainer(sandbox, container);
  }

  #claim(identity: string, what: string): string {
    if (this.#identities.has(identity)) throw new RuntimeError('AlreadyExists', `${what} already exists`);
    this.#identities.add(identity);
    return identity;
  }

  #watch(): void {
    this.#watcher = watch(this.#parts.around.state.run, { persistent: false }, (_event, name) => {
      const container = this.containers.get(name?.slice(0, 24) ?? '');
      if (container !== undefined) void this.#refresh(container);
    });
    this.#watcher.on('error', (error) => {
      this.#parts.logger.warn('file events of containers failed, their state is polled', { err: error });
    });
  }

  #relistLater(): void {
    this.#cancelRelist = this.#parts.around.clock.after(this.#parts.relistPeriodMs, () => {
      void this.refreshAll().finally(() => {
        if (!this.#closed) this.#relistLater();
      });
    });
  }

  async #refresh(container: C): Promise<void> {
    try {
      if (!this.#closed) await container.refresh();
    } catch (error) {
      this.#parts.logger.error('failed to read the state of a container', { containerId: container.id, err: error });
    }
  }
}

async function readRecord<T>(path: string): Promise<T | undefined> {
  const text = await readIfPresent(path).catch(() => undefined);
  return text === undefined ? undefined : (JSON.parse(text) as T);
}
