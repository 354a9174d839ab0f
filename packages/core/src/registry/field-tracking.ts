import { managedFieldsAfterUpdate, type TrackedKind } from '../apply/field-manager.ts';
import { FieldSet } from '../apply/field-set.ts';
import { managedFieldsErrors } from '../apply/managed-fields.ts';
import { statusErrors } from '../errors/status-error.ts';
import type { JsonObject } from '../json/json.ts';
import { decoderOf } from '../kind/decoder.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import { messageNode } from '../kind/schema-walk.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { AnyObject, KubeObject } from '../meta/types.ts';
import { storageKindOf } from '../storage/storage-key.ts';
import type { OperationOptions } from './admission.ts';
import type { RegistryServices } from './resource-binding.ts';

const maxManager = 128;

/** The manager of a write: the name that the client states, otherwise the beginning of its User-Agent. */
export function managerOf(context: RequestContext, options: OperationOptions | undefined): string {
  const named = options?.kind === 'DeleteOptions' ? undefined : options?.parameters.fieldManager;
  return named || prefixOf(context.userAgent) || 'unknown';
}

/** The User-Agent up to its first slash, without characters that cannot be printed. */
function prefixOf(userAgent: string): string {
  const slash = userAgent.indexOf('/');
  const name = slash === -1 ? userAgent : userAgent.slice(0, slash);
  if (/^[\x20-\x7e]*$/.test(name)) return name.slice(0, maxManager);
  let prefix = '';
  for (const char of name.replace(/[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu, '')) {
    if (Buffer.byteLength(prefix + char) > maxManager) break;
    prefix += char;
  }
  return prefix;
}

/** The manager of a write, and the subresource through which the object is written. */
interface TrackedWrite {
  readonly manager: string;
  readonly subresource?: string | undefined;
}

const nothing = new FieldSet();

/** Records the owners of the fields of a kind: see docs/reference/api-rules.md#server-side-apply. */
export class FieldTracking {
  readonly #kind: KindDefinition;
  readonly #services: Pick<RegistryServices, 'clock' | 'kindOf'>;
  readonly #tracked = new Map<string | undefined, TrackedKind>();

  constructor(kind: KindDefinition, services: Pick<RegistryServices, 'clock' | 'kindOf'>) {
    this.#kind = kind;
    this.#services = services;
  }

  /**
   * Sets the owners in the metadata of a changed object. @throws StatusError 422 when the client has written invalid
   * ones
   */
  track(live: AnyObject, object: AnyObject, { manager, subresource }: TrackedWrite): void {
    const meta = object.metadata;
    if (meta === undefined || (meta.managedFields === undefined && live.metadata?.managedFields === undefined)) return;
    const errors = managedFieldsErrors(meta.managedFields);
    if (errors.length > 0) throw statusErrors.invalid(this.#kind, meta.name ?? '', errors);
    const writer = { manager, nowMs: this.#services.clock.now() };
    const entries = managedFieldsAfterUpdate(this.through(subresource), live, object, writer);
    if (entries === undefined) delete meta.managedFields;
    else meta.managedFields = entries;
  }

  /** The kind as it is tracked for writes through a subresource; without one, for writes of the main resource. */
  through(subresource: string | undefined): TrackedKind {
    let tracked = this.#tracked.get(subresource);
    if (tracked === undefined) {
      const { apiVersion, schema } = this.#kind;
      tracked = {
        apiVersion,
        type: schema.node,
        subresource,
        resetFields: resetFieldsOf(this.#kind, subresource),
        inVersion: (object, version) => this.#inVersion(object, version),
      };
      this.#tracked.set(subresource, tracked);
    }
    return tracked;
  }

  #inVersion(object: JsonObject, apiVersion: string): ReturnType<TrackedKind['inVersion']> {
    const own = this.#kind;
    const kind = apiVersion === own.apiVersion ? own : this.#services.kindOf(apiVersion, own.kind);
    if (kind === undefined || kind.names.plural !== own.names.plural) return undefined;
    const type = kind.schema.node;
    const given = typeof object['apiVersion'] === 'string' ? object['apiVersion'] : own.apiVersion;
    if (given === apiVersion) return { object, type };
    if (own.convertedByWebhook) return { object: undefined, type };
    // The storage converts between the versions of a custom kind; most of them differ in nothing but the version.
    if (storageKindOf(kind) !== storageKindOf(own))
      return kind.group === own.group ? { object: { ...object, apiVersion }, type } : undefined;
    const from = given === own.apiVersion ? own : this.#services.kindOf(given, own.kind);
    if (from === undefined) return undefined;
    const decoded = decoderOf(from.schema)(object).value as KubeObject;
    const stored = from.storage ? from.storage.toStorage(decoded) : decoded;
    return { object: (kind.storage ? kind.storage.fromStorage(stored) : stored) as JsonObject, type };
  }
}

/**
 * Fields that a write cannot change, even when its body contains other values. A write of the main resource cannot
 * change the status, a write of `status` cannot change anything but status and metadata.
 */
function resetFieldsOf({ schema, strategy }: KindDefinition, subresource: string | undefined): FieldSet {
  if (subresource === undefined) return strategy.statusSubresource ? FieldSet.of(['f:status']) : nothing;
  if (subresource !== 'status') return nothing;
  const others = Object.keys(messageNode(schema)?.fields ?? {}).filter(
    (name) => name !== 'metadata' && name !== 'status',
  );
  return FieldSet.of(...others.map((name) => [`f:${name}`]));
}
