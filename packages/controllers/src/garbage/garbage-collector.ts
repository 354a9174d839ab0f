import { setImmediate } from 'node:timers/promises';
import { ApiEventRecorder, Informer, missingIsUndefined, WorkQueue } from '@keelson/client';
import {
  apiVersionOf,
  type DiscoveredResource,
  isStatusError,
  type KubeObject,
  type OwnerReference,
  type ResourceClient,
} from '@keelson/core';
import type { Service } from '@keelson/core/runtime';
import type { ControllerOptions } from '../controller-options.ts';
import { distinctResources, isCollectable, ResourceMap, storageId } from '../resource-map.ts';
import { classifyOwners, existsElsewhere, type MisplacedOwner } from './classify-owners.ts';
import { listDependents } from './list-dependents.ts';
import { policyFor, unblocked, withoutOwners } from './object-changes.ts';
import {
  foregroundFinalizer,
  isOwner,
  isTied,
  nodeOf,
  ObjectGraph,
  type ObjectNode,
  orphanFinalizer,
} from './object-graph.ts';
import { VerifiedOwners } from './verified-owners.ts';

/** Longest interval at which added and removed kinds are discovered. */
const resyncKindsMs = 5_000;
/** Time from the change of a definition of kinds to their discovery, which includes the changes in between. */
const definitionDelayMs = 500;
/** Resources whose objects define kinds. */
const definitions: ReadonlySet<string> = new Set([
  'apiextensions.k8s.io/customresourcedefinitions',
  'apiregistration.k8s.io/apiservices',
]);
/** Longest time for which the start waits for the first list of every kind. */
const firstListsMs = 2_000;
const workers = 8;
const eventLimit = { qps: 5, burst: 25 };

interface Followed {
  readonly resource: DiscoveredResource;
  readonly informer: Informer<KubeObject, ObjectNode | undefined>;
}

/**
 * Deletes objects whose owners no longer exist, delays foreground deletions until the dependents are deleted, and
 * removes references to orphaning owners: see docs/reference/api-rules.md#garbage-collection. The collector watches the
 * metadata of every kind that can be listed, watched and deleted, and reads objects from the server again before it
 * changes them. Most objects in a cluster have no owner and are not being deleted. They are not cached; the collector
 * asks the server once whether such an object exists as an owner.
 */
export class GarbageCollector implements Service {
  readonly name = 'garbage-collector-controller';
  readonly #options: ControllerOptions;
  readonly #graph = new ObjectGraph();
  readonly #verified = new VerifiedOwners();
  readonly #resources: ResourceMap;
  readonly #followed = new Map<string, Followed>();
  readonly #queue: WorkQueue;
  readonly #recorder: ApiEventRecorder;
  #cancelResync: () => void = () => {};
  #resyncing = false;
  /** A definition of kinds has changed since the last discovery. */
  #definitionsChanged = false;
  #stopped = false;
  /** False until the first lists of all kinds or a timeout. Before that, an owner that is not cached may exist. */
  #complete = false;

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.#resources = new ResourceMap(options.client, options.clock);
    this.#recorder = new ApiEventRecorder({ ...options, ...eventLimit, source: { component: this.name } });
    this.#queue = new WorkQueue({ ...options, name: this.name, workers, work: (uid) => this.#process(uid) });
  }

  async start(): Promise<void> {
    let cancel = () => {};
    const timeout = new Promise<void>((resolve) => {
      cancel = this.#options.clock.after(firstListsMs, resolve);
    });
    // A kind that cannot be listed must not delay the start. Owners are read from the server in any case.
    const listed = this.#followKinds().then((added) => Promise.all(added.map((informer) => informer.start())));
    await Promise.race([listed, timeout]).finally(() => cancel());
    this.#complete = true;
    for (const node of this.#graph.values()) this.#consider(node);
    this.#scheduleResync();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancelResync();
    await Promise.all([...this.#followed.values()].map(({ informer }) => informer.stop()));
    await this.#queue.stop();
    await this.#recorder.stop();
  }

  #scheduleResync(): void {
    if (this.#stopped || this.#resyncing) return;
    this.#cancelResync();
    const delayMs = this.#definitionsChanged ? definitionDelayMs : resyncKindsMs;
    this.#cancelResync = this.#options.clock.after(delayMs, () => void this.#resync());
  }

  async #resync(): Promise<void> {
    this.#resyncing = true;
    this.#definitionsChanged = false;
    await this.#followKinds().catch((err: unknown) =>
      this.#options.logger.warn('kinds cannot be discovered', { component: this.name, err }),
    );
    this.#resyncing = false;
    this.#scheduleResync();
  }

  #definitionChanged(): void {
    if (!this.#complete || this.#definitionsChanged) return;
    this.#definitionsChanged = true;
    this.#scheduleResync();
  }

  /** Follows exactly the kinds that are served. The first lists of added kinds are not awaited. */
  async #followKinds(): Promise<readonly Followed['informer'][]> {
    const wanted = new Map(
      distinctResources(await this.#options.client.discover())
        .filter(isCollectable)
        .map((resource) => [storageId(resource), resource]),
    );
    for (const [id, { informer }] of this.#followed) {
      if (wanted.has(id)) continue;
      this.#followed.delete(id);
      await informer.stop();
    }
    const added: Followed['informer'][] = [];
    for (const [id, resource] of wanted) {
      if (this.#stopped) break;
      if (this.#followed.has(id)) continue;
      const informer = this.#follow(resource);
      this.#followed.set(id, { resource, informer });
      added.push(informer);
      void informer.start();
      // A server answers requests while its collector begins to follow a hundred kinds.
      await setImmediate();
    }
    return added;
  }

  #follow(resource: DiscoveredResource): Informer<KubeObject, ObjectNode | undefined> {
    return new Informer({
      ...this.#options,
      client: this.#options.client.dynamic(resource, { metadataOnly: 'ownership' }),
      keep: (object) => nodeOf(resource, object),
      remember: isTied,
      handlers: {
        added: (node) => this.#observed(node),
        updated: (node, before) => {
          if (before !== undefined && before.uid !== node?.uid) this.#deleted(before);
          this.#observed(node);
        },
        deleted: (node) => this.#deleted(node),
        relisted: () => this.#reconsiderAll(),
      },
      // Definitions are not remembered, so that the handlers miss their changes.
      ...(definitions.has(storageId(resource)) && { progressed: () => this.#definitionChanged() }),
    });
  }

  #observed(node: ObjectNode | undefined): void {
    if (node === undefined) return;
    const before = this.#graph.get(node.uid);
    if (isTied(node)) this.#graph.put(node);
    else this.#graph.remove(node.uid);
    if (!this.#complete) return;
    this.#consider(node);
    // The dependents of an owner that begins to wait for them must be processed.
    if (node.foreground && before?.foreground !== true)
      for (const dependent of this.#graph.dependents(node.uid)) this.#queue.add(dependent.uid);
    // Former owners may no longer be blocked by this dependent.
    for (const owner of before?.owners ?? []) if (this.#graph.get(owner.uid)?.foreground) this.#queue.add(owner.uid);
  }

  #consider(node: ObjectNode): void {
    if (node.foreground || node.orphaning || node.owners.some((owner) => this.#mayBeDeleted(owner, node)))
      this.#queue.add(node.uid);
  }

  #deleted(node: ObjectNode | undefined): void {
    if (node === undefined) return;
    this.#graph.remove(node.uid);
    const dependents = this.#graph.dependents(node.uid);
    this.#verified.gone(node.uid, dependents.length > 0);
    for (const dependent of dependents) this.#queue.add(dependent.uid);
    for (const owner of node.owners) if (this.#graph.get(owner.uid)?.foreground) this.#queue.add(owner.uid);
  }

  /** True when the server must be asked: also for a reference with the uid of an owner, but another name or kind. */
  #mayBeDeleted(owner: OwnerReference, node: ObjectNode): boolean {
    const known = this.#graph.get(owner.uid);
    if (known?.foreground === true) return true;
    return !(known !== undefined && isOwner(known, owner, node)) && !this.#verified.has(owner, node.namespace);
  }

  /** Reconsiders all objects, because deletions of owners may have been missed. */
  #reconsiderAll(): void {
    this.#verified.clear();
    if (this.#complete) for (const node of this.#graph.values()) this.#consider(node);
  }

  async #process(uid: string): Promise<undefined> {
    const node = this.#graph.get(uid);
    if (node === undefined) return;
    if (node.orphaning) await this.#orphanDependents(node);
    else if (node.foreground) await this.#finishForeground(node);
    if (node.owners.length > 0 && !node.deleting) await this.#judge(node);
  }

  /** Removes the references of all dependents, then the finalizer of the owner. */
  async #orphanDependents(node: ObjectNode): Promise<void> {
    const owner = new Set([node.uid]);
    for (const dependent of await this.#listDependents(node)) {
      await this.#patch(dependent, (current) => withoutOwners(current, owner));
    }
    await this.#removeFinalizer(node, orphanFinalizer);
  }

  /**
   * Removes the finalizer when no dependent blocks the owner. Otherwise it queues the dependents for deletion, and is
   * called again when they have been deleted.
   */
  async #finishForeground(node: ObjectNode): Promise<void> {
    const blocks = ({ owners }: ObjectNode) =>
      owners.some((owner) => owner.uid === node.uid && owner.blockOwnerDeletion === true);
    const blocking = this.#graph.dependents(node.uid).filter(blocks);
    for (const dependent of blocking) if (!dependent.deleting) this.#queue.add(dependent.uid);
    // In a cycle of owners every object waits for another one, so dependents that wait for this object stop blocking
    // it.
    const waitingForNode = this.#graph.waitingOwners(node);
    for (const dependent of blocking) {
      if (waitingForNode.has(dependent.uid)) await this.#patch(dependent, (current) => unblocked(current, node.uid));
    }
    if (blocking.length > 0 || (await this.#listDependents(node)).some(blocks)) return;
    await this.#removeFinalizer(node, foregroundFinalizer);
  }

  /**
   * The dependents of all kinds. For a foreground deletion a kind that is no longer served has none, nor has one that
   * was never listed, such as those of an aggregated API without a server.
   */
  async #listDependents(node: ObjectNode): Promise<readonly ObjectNode[]> {
    const found: ObjectNode[] = [];
    for (const { resource, informer } of this.#followed.values()) {
      const dependents = await listDependents(this.#options.client, resource, node).catch((error: unknown) => {
        // A dependent that is missed is deleted after its owner, which an orphaning deletion must prevent.
        if (node.orphaning || (informer.synced && !isStatusError(error, 'NotFound'))) throw error;
        return [];
      });
      found.push(...dependents);
    }
    return found;
  }

  async #judge(node: ObjectNode): Promise<void> {
    const client = this.#clientOf(node);
    const current = await client.get(node.name).catch(missingIsUndefined);
    const { metadata } = current ?? {};
    if (metadata?.uid !== node.uid || metadata.deletionTimestamp !== undefined) return;
    const { solid, dangling, waiting, misplaced } = await this.#verified.during(() =>
      classifyOwners(this.#options.client, this.#resources, node, metadata.ownerReferences ?? []),
    );
    for (const owner of misplaced) await this.#reportMisplaced(owner, node);
    if (dangling.length === 0 && waiting.length === 0) return;
    if (solid.length > 0) {
      const stale = new Set([...dangling, ...waiting].map((owner) => owner.uid));
      await this.#patch(node, (object) => withoutOwners(object, stale));
      return;
    }
    const hasDependents = this.#graph.dependents(node.uid).length > 0;
    await client
      .delete(node.name, {
        ...policyFor(metadata.finalizers ?? [], waiting.length > 0 && hasDependents),
        preconditions: {
          uid: node.uid,
          ...(metadata.resourceVersion === undefined ? {} : { resourceVersion: metadata.resourceVersion }),
        },
      })
      .catch(missingIsUndefined);
  }

  async #reportMisplaced(owner: MisplacedOwner, node: ObjectNode): Promise<void> {
    const { reference } = owner;
    if (this.#verified.isGone(reference.uid) || !(await existsElsewhere(this.#options.client, owner, node))) return;
    const { namespace = '', name, uid, resource } = node;
    const place = `namespace: ${namespace}, name: ${reference.name}, uid: ${reference.uid}`;
    this.#recorder.record(
      {
        apiVersion: apiVersionOf(resource),
        kind: resource.kind,
        name,
        uid,
        ...(namespace === '' ? {} : { namespace }),
      },
      'Warning',
      'OwnerRefInvalidNamespace',
      `ownerRef [${reference.apiVersion}/${reference.kind}, ${place}] does not exist in namespace "${namespace}"`,
    );
  }

  async #removeFinalizer(node: ObjectNode, finalizer: string): Promise<void> {
    await this.#patch(node, (current) => {
      const finalizers = current.metadata?.finalizers ?? [];
      return finalizers.includes(finalizer)
        ? { finalizers: finalizers.filter((entry) => entry !== finalizer) }
        : undefined;
    });
  }

  /** Changes the metadata of the current object; after a conflict the queue retries. */
  async #patch(node: ObjectNode, change: (current: KubeObject) => Record<string, unknown> | undefined): Promise<void> {
    const client = this.#clientOf(node);
    const current = await client.get(node.name).catch(missingIsUndefined);
    if (current?.metadata?.uid !== node.uid) return;
    const metadata = change(current);
    if (metadata === undefined) return;
    const precondition = { uid: node.uid, resourceVersion: current.metadata.resourceVersion };
    await client.patch(node.name, 'merge', { metadata: { ...precondition, ...metadata } }).catch(missingIsUndefined);
  }

  #clientOf(node: ObjectNode): ResourceClient<KubeObject> {
    const all = this.#options.client.dynamic(node.resource, { metadataOnly: true });
    return node.namespace === undefined ? all : all.namespace(node.namespace);
  }
}
