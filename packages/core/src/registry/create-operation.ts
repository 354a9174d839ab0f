import { randomInt } from 'node:crypto';
import { type StatusError, statusErrors } from '../errors/status-error.ts';
import { isStorageError, StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { AnyObject } from '../meta/types.ts';
import type { WriteOptions } from '../storage/resource-storage.ts';
import type { AdmissionRequest, OperationOptions } from './admission.ts';
import { clearStatus, dropRepeatedOwners, newMetadata, objectPath, validateObjectMeta } from './common-fields.ts';
import { type DecodedObject, decodeBody, settleNamespace } from './decode-body.ts';
import { managerOf } from './field-tracking.ts';
import type { Allocation } from './object-allocator.ts';
import {
  type NameGenerator,
  nextTurn,
  type ResourceBinding,
  requiredNamespace,
  warningOnce,
} from './resource-binding.ts';
import type { Answer, Body, Target, WriteParameters } from './resource-service.ts';

/** Characters of generated names. Without vowels they contain no words, and no two characters look similar. */
const suffixAlphabet = 'bcdfghjklmnpqrstvwxz2456789';
const suffixLength = 5;
const maxBaseLength = 58;

/** Number of generated names that a create tries: see docs/reference/api-rules.md#generated-names. */
const nameAttempts = 8;

/** Appends five random characters to the base, which is cut to 58 characters. */
export const randomName: NameGenerator = (base) => {
  let name = base.slice(0, maxBaseLength);
  for (let i = 0; i < suffixLength; i++) name += suffixAlphabet[randomInt(suffixAlphabet.length)];
  return name;
};

/** An object that is ready to be stored. */
interface NewObject {
  readonly key: string;
  readonly name: string;
  /** The name is the result of generateName. */
  readonly generated: boolean;
  readonly json: Buffer;
  readonly ttlMs: number | undefined;
  /** The decoded object; present in a dry run only. */
  readonly object: AnyObject | undefined;
  readonly allocation: Allocation | undefined;
}

/** POST of a collection: see docs/reference/api-rules.md#order-of-a-write. */
export class CreateOperation {
  readonly #binding: ResourceBinding;

  constructor(binding: ResourceBinding) {
    this.#binding = binding;
  }

  async run(caller: RequestContext, target: Target, body: Body, parameters: WriteParameters): Promise<Answer> {
    const { kind, resource, storage } = this.#binding;
    const context = warningOnce(caller);
    this.#binding.requireVerb('create');
    for (let attempt = 1; ; attempt++) {
      const made = await this.#make(context, target, body, parameters);
      try {
        context.signal?.throwIfAborted();
        if (made.object !== undefined) return await this.#dryRun(context, made.key, made.object);
        const stored = await storage.create(made.key, made.json, writeOptions(context, made.ttlMs));
        await made.allocation?.end(true);
        return { stored, kind, code: 201 };
      } catch (error) {
        if (!isStorageError(error, StorageErrorCode.OutcomeUnknown)) await made.allocation?.end(false);
        if (!isStorageError(error, StorageErrorCode.AlreadyExists)) throw error;
        if (!made.generated) throw await this.#alreadyExists(made.key, made.name);
        if (attempt === nameAttempts) throw statusErrors.generateNameCollision(resource, made.name);
      }
    }
  }

  /** Each attempt at a name starts from the body, so that only bytes are retained during the write of the store. */
  async #make(context: RequestContext, target: Target, body: Body, parameters: WriteParameters): Promise<NewObject> {
    const binding = this.#binding;
    const { kind } = binding;
    const namespace = requiredNamespace(kind, target);
    const settle = (object: AnyObject) => settleNamespace(namespace, object);
    const decode = await decodeBody(binding.bodyType, { context, body, parameters, settle });
    const decoded = decode();
    const generated = !decoded.object.metadata?.name;
    const options: OperationOptions = { kind: 'CreateOptions', parameters };
    const object = await prepareNewObject(binding, context, decoded, parameters.dryRun, options);
    const allocation = await binding.allocator?.allocate(object, undefined, parameters.dryRun);
    const prepared = nextTurn(body.bytes.length);
    if (prepared) await prepared;
    const name = object.metadata?.name ?? '';
    return {
      key: binding.keyOf(namespace, name),
      name,
      generated,
      json: binding.encode(object),
      ttlMs: kind.strategy.ttlMs?.(object),
      object: parameters.dryRun ? object : undefined,
      allocation,
    };
  }

  async #dryRun(context: RequestContext, key: string, object: AnyObject): Promise<Answer> {
    if (await this.#binding.storage.get(key, { at: 'latest' }, writeOptions(context, undefined))) {
      throw new StorageError(StorageErrorCode.AlreadyExists, `key ${key} exists`, { key });
    }
    return { object, code: 201 };
  }

  /** The 409 for an existing name. Its message also states whether the existing object is being deleted. */
  async #alreadyExists(key: string, name: string): Promise<StatusError> {
    const existing = await this.#binding.storage.get(key, { at: 'latest' });
    const deleting = existing?.value().metadata?.deletionTimestamp !== undefined;
    return statusErrors.alreadyExists(this.#binding.resource, name, deleting);
  }
}

function writeOptions({ signal }: RequestContext, ttlMs: number | undefined): WriteOptions {
  if (ttlMs === undefined) return signal === undefined ? {} : { signal };
  return signal === undefined ? { ttlMs } : { ttlMs, signal };
}

/**
 * Prepares a decoded body for its first write: defaults, generated name, mutating admission, server-set fields,
 * validation, validating admission. The name and namespace of the path have been set before.
 *
 * @throws StatusError 400 when the body has a resourceVersion, 422 when the object is invalid, or the error of an
 *   admission plugin.
 */
export async function prepareNewObject(
  binding: ResourceBinding,
  context: RequestContext,
  decoded: DecodedObject,
  dryRun: boolean,
  options?: OperationOptions,
): Promise<AnyObject> {
  const { object, errors } = decoded;
  const { kind, services } = binding;
  const { strategy } = kind;
  // Hooks depend on the static type of the object, so they are not called for one that does not fit its schema.
  const fitsSchema = errors.length === 0;
  const meta = object.metadata ?? {};
  object.metadata = meta;
  if (meta.resourceVersion && meta.resourceVersion !== '0') {
    throw statusErrors.badRequest('resourceVersion should not be set on objects to be created');
  }
  if (fitsSchema) strategy.default?.(object);
  if (meta.managedFields !== undefined && !decoded.isApplied) {
    binding.fields.track({}, object, { manager: managerOf(context, options) });
  }
  if (!meta.name && meta.generateName) meta.name = services.generateName(meta.generateName);

  const request: AdmissionRequest = {
    operation: 'create',
    kind,
    namespace: meta.namespace,
    name: meta.name ?? '',
    subresource: undefined,
    object,
    oldObject: undefined,
    dryRun,
    options,
    context,
  };
  if (fitsSchema) {
    const mutating = services.admission.mutate(request);
    if (mutating) await mutating;
  }

  setServerFields(binding, context, object, fitsSchema);

  const problems = [
    ...errors,
    ...validateObjectMeta(object.metadata, {
      nameRule: strategy.nameRule ?? 'dns1123Subdomain',
      namespaced: kind.scope === 'Namespaced',
      finalizerRule: strategy.finalizerRule,
    }),
    ...(fitsSchema ? [...(strategy.validate?.(object) ?? []), ...(strategy.validateCreate?.(object) ?? [])] : []),
  ];
  if (problems.length > 0) throw statusErrors.invalid(kind, object.metadata.name ?? '', problems);
  for (const text of strategy.warnings?.(object) ?? []) context.warn(text);
  const validating = services.admission.validate(request);
  if (validating) await validating;
  return object;
}

function setServerFields(
  binding: ResourceBinding,
  context: RequestContext,
  object: AnyObject,
  fitsSchema: boolean,
): void {
  const { kind, services } = binding;
  const { strategy } = kind;
  const given = object.metadata ?? {};
  object.metadata = newMetadata(kind, given, {
    nowMs: services.clock.now(),
    ...(services.selfLinks ? { selfLink: objectPath(binding.storedKind, given) } : {}),
  });
  dropRepeatedOwners(object.metadata, context.warn, true);
  if (strategy.statusSubresource && !strategy.keepsStatusOnCreate) clearStatus(kind, object);
  if (fitsSchema) strategy.prepareForCreate?.(object, binding.strategyContext(context));
}
