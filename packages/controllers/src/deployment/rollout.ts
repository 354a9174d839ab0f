import { isControlledBy, type ReconcileRun } from '@keelson/controller-kit';
import { isStatusError, StatusReason } from '@keelson/core';
import { type appsV1, type Deployment, ReplicaSet } from '@keelson/kinds';
import { timeOf } from '../workload/object-status.ts';
import { isNamespaceTerminating, textOf } from '../workload/pod-writes.ts';
import { compareRevisions, revisionAnnotation, revisionOf } from './annotations.ts';
import {
  byAge,
  isSameTemplate,
  mostPods,
  mostReplicas,
  newReplicaSet,
  recordRevision,
  replicasOf,
} from './replica-sets.ts';
import { isRollingUpdate, progressDeadlineSeconds } from './strategy.ts';

/** The state of one run for a deployment: its replica sets, and what its status will be. */
export class Rollout {
  readonly run: ReconcileRun;
  readonly deployment: Deployment;
  /** Conditions of the new status. The steps of the run add further conditions. */
  conditions: readonly appsV1.DeploymentCondition[];
  /** Annotations of the deployment after the run. */
  annotations: Record<string, string>;
  collisionCount: number | undefined;
  #sets: ReplicaSet[];

  constructor(deployment: Deployment, sets: readonly ReplicaSet[], run: ReconcileRun) {
    this.run = run;
    this.deployment = deployment;
    this.#sets = [...sets].sort(byAge);
    this.conditions = deployment.status?.conditions ?? [];
    this.annotations = { ...deployment.metadata?.annotations };
    this.collisionCount = deployment.status?.collisionCount;
  }

  /** All replica sets, the oldest first. */
  get all(): readonly ReplicaSet[] {
    return this.#sets;
  }

  /** The replica set of the present template, the oldest one if several have it. */
  get current(): ReplicaSet | undefined {
    return this.#sets.find((set) => isSameTemplate(set, this.deployment));
  }

  /** The other replica sets, the oldest first. */
  get old(): readonly ReplicaSet[] {
    const uid = this.current?.metadata?.uid;
    return this.#sets.filter(({ metadata }) => metadata?.uid !== uid);
  }

  get active(): readonly ReplicaSet[] {
    return this.#sets.filter((set) => replicasOf(set) > 0);
  }

  /** Replaces a replica set by the response of its update. */
  replace(set: ReplicaSet): void {
    this.#sets = this.#sets.map((other) => (other.metadata?.uid === set.metadata?.uid ? set : other));
  }

  condition(type: string): appsV1.DeploymentCondition | undefined {
    return this.conditions.find((condition) => condition.type === type);
  }

  /** Sets a condition, unless the present one has the same status and reason. */
  setCondition(type: string, status: string, reason: string, message: string): void {
    const present = this.condition(type);
    if (present?.status === status && present.reason === reason) return;
    this.renewCondition(type, status, reason, message);
  }

  /** Sets a condition with the present time as the time of its last update. */
  renewCondition(type: string, status: string, reason: string, message: string): void {
    const now = timeOf(this.run);
    const present = this.condition(type);
    const changed = (present?.status === status ? present.lastTransitionTime : undefined) ?? now;
    this.putCondition({ type, status, lastUpdateTime: now, lastTransitionTime: changed, reason, message });
  }

  putCondition(condition: appsV1.DeploymentCondition): void {
    this.conditions = [...this.conditions.filter(({ type }) => type !== condition.type), condition];
  }

  removeCondition(type: string): void {
    this.conditions = this.conditions.filter((condition) => condition.type !== type);
  }

  /** Gives the present replica set, if it exists, the greatest revision. The deployment gets the same one. */
  async syncRevision(): Promise<void> {
    const { current } = this;
    if (current === undefined) return;
    await recordRevision(this, current, this.#nextRevision());
    this.annotations[revisionAnnotation] = this.current?.metadata?.annotations?.[revisionAnnotation] ?? '';
    if (progressDeadlineSeconds(this.deployment) === undefined || this.condition('Progressing') !== undefined) return;
    const message = `Found new replica set "${current.metadata?.name}"`;
    this.setCondition('Progressing', 'True', 'FoundNewReplicaSet', message);
  }

  /**
   * Creates the replica set of the present template if it does not exist; false when its name is taken by another
   * object, after which the next run chooses another name.
   */
  async createCurrent(): Promise<boolean> {
    if (this.current !== undefined) return true;
    const revision = this.#nextRevision();
    const set = newReplicaSet(this.deployment, this.#firstSize(), revision);
    const name = set.metadata?.name ?? '';
    const limited = progressDeadlineSeconds(this.deployment) !== undefined;
    const sets = this.run.client.resource(ReplicaSet).namespace(this.deployment.metadata?.namespace ?? '');
    try {
      this.#sets.push(await sets.create(set));
    } catch (error) {
      if (isStatusError(error, StatusReason.AlreadyExists)) return this.#adoptCreated(await sets.get(name));
      if (this.run.signal.aborted || isNamespaceTerminating(error)) throw error;
      const message = `Failed to create new replica set "${name}": ${textOf(error)}`;
      if (limited) this.setCondition('Progressing', 'False', 'ReplicaSetCreateError', message);
      this.run.event(this.deployment, 'Warning', 'ReplicaSetCreateError', message);
      throw error;
    }
    const size = replicasOf(set);
    if (size > 0) {
      const message = `Scaled up replica set ${name} from 0 to ${size}`;
      this.run.event(this.deployment, 'Normal', 'ScalingReplicaSet', message);
    }
    this.annotations[revisionAnnotation] = String(revision);
    if (limited) this.setCondition('Progressing', 'True', 'NewReplicaSetCreated', `Created new replica set "${name}"`);
    return true;
  }

  /**
   * Adopts a replica set that an earlier run created without receiving the response. For a different set of this name,
   * returns false and increases the collision count, from which the next name is derived.
   */
  #adoptCreated(existing: ReplicaSet): boolean {
    if (isControlledBy(existing, this.deployment) && isSameTemplate(existing, this.deployment)) {
      this.#sets.push(existing);
      return true;
    }
    this.collisionCount = (this.collisionCount ?? 0) + 1;
    return false;
  }

  #nextRevision(): bigint {
    const last = [...this.old].sort(compareRevisions).at(-1);
    return last === undefined ? 1n : revisionOf(last) + 1n;
  }

  /**
   * The initial size of the replica set of the present template, limited by the surge and the pods of the other sets.
   */
  #firstSize(): number {
    const replicas = replicasOf(this.deployment);
    if (!isRollingUpdate(this.deployment)) return replicas;
    const pods = mostPods(this.run, this.#sets);
    if (pods === undefined) return 0;
    return Math.max(0, Math.min(replicas, mostReplicas(this.deployment) - pods));
  }
}
