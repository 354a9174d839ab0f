import { keepTimes } from '../apply/field-manager.ts';
import { statusErrors } from '../errors/status-error.ts';
import { isStorageError, StorageErrorCode } from '../errors/storage-error.ts';
import { equalJson } from '../json/json.ts';
import type { StrategyContext } from '../kind/strategy.ts';
import { addErrors, type FieldError, fieldError } from '../meta/field-error.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { AnyObject, ObjectMeta } from '../meta/types.ts';
import type { UpdateDecision, UpdateOutcome } from '../storage/resource-storage.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { AdmissionRequest, OperationOptions } from './admission.ts';
import {
  changedMetadata,
  isReleased,
  objectPath,
  onlyStatus,
  raiseGeneration,
  restoreStatus,
  validateObjectMetaUpdate,
} from './common-fields.ts';
import type { DecodedObject } from './decode-body.ts';
import { managerOf } from './field-tracking.ts';
import type { Allocation } from './object-allocator.ts';
import {
  isStorable,
  nextTurn,
  type ObjectTarget,
  type ResourceBinding,
  signalOption,
  warningOnce,
} from './resource-binding.ts';
import type { Answer } from './resource-service.ts';
import { modifiedText } from './translate-error.ts';

/** The hooks of the kind that a write calls: those of the main resource, those of status, or neither. */
export type WriteMode = 'spec' | 'status' | 'raw';

/** The requested new state of an object. */
export interface Proposal extends Pick<DecodedObject, 'isApplied'> {
  readonly object: AnyObject;
  /** Values that do not fit the schema. They are reported after the checks that precede validation. */
  readonly errors: readonly FieldError[];
}

/** One change of one object by a PUT, a PATCH or a subresource. */
export interface ObjectWrite {
  readonly context: RequestContext;
  readonly target: ObjectTarget;
  readonly subresource?: string;
  readonly mode: WriteMode;
  readonly dryRun: boolean;
  /** The options of the call, and whether an action makes the change: see AdmissionRequest. */
  readonly options?: OperationOptions;
  readonly byAction?: boolean;
  /**
   * Called once per attempt with a private copy of the stored object. Returns a new object at every call. May throw a
   * StatusError.
   */
  readonly propose: (old: AnyObject, current: StoredObject) => Proposal;
  /** Creates the object when it does not exist. Without it a missing object is a 404. */
  readonly create?: () => Promise<AnyObject>;
}

/**
 * The result of a write. `object` is the decoded new state. `stored` is absent in a dry run and when the write removed
 * the object.
 */
export interface WrittenObject {
  readonly outcome: UpdateOutcome['outcome'];
  readonly object: AnyObject;
  readonly stored?: StoredObject;
}

/** One attempt of a write. */
interface Decided {
  readonly decision: UpdateDecision;
  readonly object: AnyObject;
  readonly allocation: Allocation | undefined;
}

/** Performs every change of an existing object: see docs/reference/api-rules.md#order-of-a-write. */
export class ObjectWriter {
  readonly #binding: ResourceBinding;

  constructor(binding: ResourceBinding) {
    this.#binding = binding;
  }

  async write(request: ObjectWrite): Promise<WrittenObject> {
    const { storage } = this.#binding;
    const write = { ...request, context: warningOnce(request.context) };
    const { key } = write.target;
    const signal = signalOption(write.context);
    let object: AnyObject = {};
    let allocation: Allocation | undefined;
    const decide = async (current: StoredObject | undefined): Promise<UpdateDecision> => {
      // Reached again only when the previous attempt did not store the object: release what was allocated for it.
      await allocation?.end(false);
      allocation = undefined;
      write.context.signal?.throwIfAborted();
      const decided = await (current === undefined ? this.#create(write) : this.#change(write, current));
      ({ object, allocation } = decided);
      return decided.decision;
    };
    if (!isStorable(write.target)) {
      await decide(undefined);
      throw statusErrors.notFound(this.#binding.resource, write.target.name);
    }
    if (write.dryRun) {
      const current = await storage.get(key, { at: 'latest' }, signal);
      const decision = await decide(current);
      return { object, outcome: dryOutcome(decision, current) };
    }
    const { outcome, object: stored } = await storage.update(key, decide, signal).catch(async (error: unknown) => {
      if (!isStorageError(error, StorageErrorCode.OutcomeUnknown)) await allocation?.end(false);
      throw error;
    });
    await allocation?.end(true);
    if (outcome !== 'deleted') return { object, outcome, stored };
    await this.#binding.allocator?.release(object);
    // Watchers receive the last stored state with the deletion; the caller receives the state after its write.
    object.metadata = { ...object.metadata, resourceVersion: String(stored.revision) };
    return { object, outcome };
  }

  async #create(write: ObjectWrite): Promise<Decided> {
    if (!write.create) throw statusErrors.notFound(this.#binding.resource, write.target.name);
    // The request was authorized as an update.
    await write.context.authorize?.('create');
    const object = await write.create();
    const allocation = await this.#binding.allocator?.allocate(object, undefined, write.dryRun);
    return { object, allocation, decision: this.#put(object) };
  }

  #put(object: AnyObject): UpdateDecision {
    const json = this.#binding.encode(object);
    const ttlMs = this.#binding.kind.strategy.ttlMs?.(object);
    return { do: 'write', json, ...(ttlMs === undefined ? {} : { ttlMs }) };
  }

  async #change(write: ObjectWrite, current: StoredObject): Promise<Decided> {
    const binding = this.#binding;
    const { kind, services } = binding;
    const { name } = write.target;
    const bytes = current.byteLength;
    const old = binding.read(current);
    await nextTurn(bytes);
    const proposal = relevantTo(write.mode, write.propose(old, current));
    await nextTurn(bytes);
    const fitsSchema = proposal.errors.length === 0;
    const proposed = proposal.object.metadata;
    const wantedVersion = proposed?.resourceVersion;
    checkUid(binding, name, proposed?.uid, old.metadata?.uid);
    const request: AdmissionRequest = {
      operation: 'update',
      kind,
      namespace: write.target.namespace,
      name,
      subresource: write.subresource,
      object: proposal.object,
      oldObject: old,
      dryRun: write.dryRun,
      options: write.options,
      byAction: write.byAction,
      context: write.context,
    };
    if (fitsSchema) {
      if (write.mode !== 'raw') kind.strategy.default?.(proposal.object);
      if (write.options !== undefined && !write.byAction && !proposal.isApplied) {
        const manager = managerOf(write.context, write.options);
        binding.fields.track(old, proposal.object, { manager, subresource: write.subresource });
      }
      const mutating = services.admission.mutate(request);
      if (mutating) await mutating;
    }
    checkVersion(binding, name, wantedVersion, old.metadata?.resourceVersion);
    await nextTurn(bytes);
    const object = this.#setServerFields(write, proposal, old, binding.strategyContext(write.context));
    await nextTurn(bytes);
    this.#validate(write, object, old, proposal.errors);
    await nextTurn(bytes);
    const validating = services.admission.validate({ ...request, object });
    if (validating) await validating;
    if (isReleased(object, kind.strategy)) return { object, allocation: undefined, decision: { do: 'delete' } };
    if (object.metadata?.managedFields !== undefined) keepTimes(object, old);
    const allocation = changesIntent(write) ? await binding.allocator?.allocate(object, old, write.dryRun) : undefined;
    return { object, allocation, decision: equalJson(object, old) ? { do: 'keep' } : this.#put(object) };
  }

  /**
   * Restores fields that a write of this mode must not change, and sets the fields that only the server sets: step 8 of
   * docs/reference/api-rules.md#order-of-a-write.
   */
  #setServerFields(write: ObjectWrite, proposal: Proposal, old: AnyObject, context: StrategyContext): AnyObject {
    const { kind, services, storedKind } = this.#binding;
    const { strategy } = kind;
    const { mode } = write;
    const fitsSchema = proposal.errors.length === 0;
    const object =
      mode === 'status' && fitsSchema
        ? onlyStatus(proposal.object, old, strategy.statusKeepsMetadata)
        : proposal.object;
    object.metadata = changedMetadata(object.metadata ?? {}, old.metadata ?? {}, {
      ...(services.selfLinks ? { selfLink: objectPath(storedKind, old.metadata ?? {}) } : {}),
      warn: write.context.warn,
    });
    if (!fitsSchema) return object;
    if (mode === 'spec') {
      if (strategy.statusSubresource) restoreStatus(object, old);
      strategy.prepareForUpdate?.(object, old, context);
    } else if (mode === 'status') {
      strategy.prepareForStatusUpdate?.(object, old, context);
    }
    if (changesIntent(write)) raiseGeneration(kind, object, old);
    return object;
  }

  #validate(write: ObjectWrite, object: AnyObject, old: AnyObject, errors: readonly FieldError[]): void {
    const { kind } = this.#binding;
    const { strategy } = kind;
    const problems: FieldError[] = [];
    addErrors(problems, errors);
    addErrors(problems, validateObjectMetaUpdate(object.metadata ?? {}, old.metadata ?? {}, strategy));
    if (errors.length === 0) {
      if (write.mode === 'status') addErrors(problems, strategy.validateStatusUpdate?.(object, old) ?? []);
      else addErrors(problems, strategy.validate?.(object) ?? []);
      if (write.mode === 'spec') addErrors(problems, strategy.validateUpdate?.(object, old) ?? []);
    }
    if (problems.length > 0) throw statusErrors.invalid(kind, write.target.name, problems);
    if (write.mode === 'spec') for (const text of strategy.warnings?.(object, old) ?? []) write.context.warn(text);
  }

  /** The answer to a PUT or PATCH. */
  answer(written: WrittenObject): Answer {
    const code = written.outcome === 'created' ? 201 : 200;
    return written.stored
      ? { stored: written.stored, kind: this.#binding.kind, code }
      : { object: written.object, code };
  }
}

/** True for a main write and for a client's write of a part of the object, such as `resize` of a pod. */
function changesIntent({ mode, byAction }: ObjectWrite): boolean {
  return mode === 'spec' || (mode === 'raw' && !byAction);
}

/** The proposal without errors of fields that a status write restores from the stored object. */
function relevantTo(mode: WriteMode, proposal: Proposal): Proposal {
  if (mode !== 'status' || proposal.errors.length === 0) return proposal;
  return { ...proposal, errors: proposal.errors.filter(({ field }) => /^(status|metadata)\b/.test(field)) };
}

function dryOutcome(decision: UpdateDecision, current: StoredObject | undefined): UpdateOutcome['outcome'] {
  if (decision.do === 'keep') return 'unchanged';
  if (decision.do === 'delete') return 'deleted';
  return current === undefined ? 'created' : 'updated';
}

/** Properties that the stored object must have. Empty text counts as unset. */
export interface Preconditions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/** Makes the write of `object` depend on `wanted`: the writer compares its metadata with the stored object. */
export function requirePreconditions(object: AnyObject, { uid, resourceVersion }: Preconditions): void {
  object.metadata = {
    ...object.metadata,
    ...(uid ? { uid } : {}),
    ...(resourceVersion ? { resourceVersion } : {}),
  };
}

/** @throws StatusError 409 when the uid of the stored object differs. */
export function checkUid(
  binding: ResourceBinding,
  name: string,
  wanted: string | undefined,
  found: string | undefined,
): void {
  if (!wanted || wanted === found) return;
  throw statusErrors.conflict(
    binding.resource,
    name,
    `Precondition failed: UID in precondition: ${wanted}, UID in object meta: ${found ?? ''}`,
  );
}

/**
 * Checks the preconditions of a DELETE: see docs/reference/api-rules.md#answers-to-a-delete. @throws StatusError 409.
 */
export function checkDeletePreconditions(
  { kind }: ResourceBinding,
  name: string,
  wanted: Preconditions,
  found: ObjectMeta | undefined,
): void {
  const differs = (field: string, asked: string, known: string | undefined, event: string) =>
    statusErrors.conflict(
      { group: kind.group, resource: kind.kind },
      name,
      `the ${field} in the precondition (${asked}) does not match the ${field} in record (${known ?? ''}). ` +
        `The object might have been ${event}`,
    );
  const { uid, resourceVersion: version } = wanted;
  if (uid && uid !== found?.uid) throw differs('UID', uid, found?.uid, 'deleted and then recreated');
  if (version && version !== found?.resourceVersion)
    throw differs('ResourceVersion', version, found?.resourceVersion, 'modified');
}

function isUnset(version: string | undefined): boolean {
  return version === undefined || version === '' || version === '0';
}

/**
 * Compares the resourceVersion of a write with the stored one: see
 * docs/reference/api-rules.md#unconditional-updates-and-creation-by-put.
 *
 * @throws StatusError 409 when they differ, 422, which names the resource, when the write has none and the kind
 *   requires one.
 */
export function checkVersion(
  binding: ResourceBinding,
  name: string,
  wanted: string | undefined,
  found: string | undefined,
): void {
  if (isUnset(wanted)) {
    if (binding.kind.strategy.allowUnconditionalUpdate ?? true) return;
    const { group, resource } = binding.resource;
    throw statusErrors.invalid({ group, kind: resource }, name, [
      fieldError.invalid('metadata.resourceVersion', 0, 'must be specified for an update'),
    ]);
  }
  if (wanted !== found) throw statusErrors.conflict(binding.resource, name, modifiedText);
}
