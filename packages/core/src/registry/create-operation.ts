import { statusErrors } from '../errors/status-error.ts';
import { isStorageError, StorageError, StorageErrorCode } from '../errors/storage-error.ts';
import type { RequestContext } from '../meta/request-context.ts';
import { objectKey } from '../scope/storage-key.ts';
import { decodeObject, parseBody, settleType } from './decode-body.ts';
import { checkFields } from './field-validation.ts';
import type { AnyObject } from './json-values.ts';
import { nameAttempts } from './name-generator.ts';
import { prepareNewObject } from './new-object.ts';
import { requiredNamespace, settleNamespace } from './object-target.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { Answer, Body, Target, WriteParameters } from './resource-service.ts';
import { warningOnce } from './warning-once.ts';

/** POST of a collection; api-conventions 5. */
export class CreateOperation {
  readonly #binding: ResourceBinding;

  constructor(binding: ResourceBinding) {
    this.#binding = binding;
  }

  async run(caller: RequestContext, target: Target, body: Body, parameters: WriteParameters): Promise<Answer> {
    const binding = this.#binding;
    const context = warningOnce(caller);
    binding.requireVerb('create');
    const namespace = requiredNamespace(binding.kind, target);
    const parsed = parseBody(binding.bodyType, body, parameters.fieldValidation !== 'Ignore');
    settleType(binding.bodyType, parsed.value);
    for (let attempt = 1; ; attempt++) {
      const decoded = decodeObject(binding.bodyType, parsed.value);
      if (attempt === 1) {
        checkFields(
          parameters.fieldValidation,
          { unknownFields: decoded.unknownFields, duplicateFields: parsed.duplicateFields },
          context,
        );
      }
      settleNamespace(namespace, decoded.object);
      const generated = !decoded.object.metadata?.name;
      const object = await prepareNewObject(binding, context, decoded, parameters.dryRun);
      context.signal?.throwIfAborted();
      const name = object.metadata?.name ?? '';
      try {
        return await this.#store(context, objectKey(binding.kind, namespace, name), object, parameters.dryRun);
      } catch (error) {
        if (!isStorageError(error, StorageErrorCode.AlreadyExists)) throw error;
        if (!generated) throw await this.#taken(objectKey(binding.kind, namespace, name), name);
        if (attempt === nameAttempts) throw statusErrors.generateNameCollision(binding.resource, name);
      }
    }
  }

  async #store(context: RequestContext, key: string, object: AnyObject, dryRun: boolean): Promise<Answer> {
    const { kind, storage } = this.#binding;
    const json = this.#binding.encode(object);
    const signal = context.signal ? { signal: context.signal } : {};
    if (dryRun) {
      if (await storage.get(key, { at: 'latest' }, signal)) {
        throw new StorageError(StorageErrorCode.AlreadyExists, `key ${key} exists`, { key });
      }
      return { object, code: 201 };
    }
    const ttlMs = kind.strategy.ttlMs?.(object);
    const stored = await storage.create(key, json, { ...(ttlMs === undefined ? {} : { ttlMs }), ...signal });
    return { stored, kind, code: 201 };
  }

  /** Says so when the name will soon be free again. */
  async #taken(key: string, name: string) {
    const existing = await this.#binding.storage.get(key, { at: 'latest' });
    const leaving = existing?.value().metadata?.deletionTimestamp !== undefined;
    return statusErrors.alreadyExists(this.#binding.resource, name, leaving);
  }
}
