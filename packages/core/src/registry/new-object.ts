import { statusErrors } from '../errors/status-error.ts';
import { validateObjectMeta } from '../kind/object-meta-validation.ts';
import type { RequestContext } from '../meta/request-context.ts';
import type { AdmissionRequest } from './admission.ts';
import type { DecodedObject } from './decode-body.ts';
import type { AnyObject } from './json-values.ts';
import type { ResourceBinding } from './resource-binding.ts';
import { dropRepeatedOwners, newMetadata, objectPath } from './stamp-metadata.ts';
import { clearStatus } from './status-isolation.ts';

/**
 * Makes a decoded body the object to store: defaults, generated name, mutating admission, server-set fields,
 * validation, validating admission. Name and namespace have been settled with the path before.
 *
 * @throws StatusError 400 for a resourceVersion, 422 for an invalid object, whatever admission refuses with.
 */
export async function prepareNewObject(
  binding: ResourceBinding,
  context: RequestContext,
  decoded: DecodedObject,
  dryRun: boolean,
): Promise<AnyObject> {
  const { object, errors } = decoded;
  const { kind, services } = binding;
  const { strategy } = kind;
  // Hooks may trust the static type, so an object that is not of its type meets none of them.
  const sound = errors.length === 0;
  const meta = object.metadata ?? {};
  object.metadata = meta;
  if (meta.resourceVersion && meta.resourceVersion !== '0') {
    throw statusErrors.badRequest('resourceVersion should not be set on objects to be created');
  }
  if (sound) strategy.default?.(object);
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
    context,
  };
  if (sound) {
    const mutating = services.admission.mutate(request);
    if (mutating) await mutating;
  }

  stamp(binding, context, object, sound);

  const problems = [
    ...errors,
    ...validateObjectMeta(object.metadata, {
      nameRule: strategy.nameRule ?? 'dns1123Subdomain',
      namespaced: kind.scope === 'Namespaced',
    }),
    ...(sound ? [...(strategy.validate?.(object) ?? []), ...(strategy.validateCreate?.(object) ?? [])] : []),
  ];
  if (problems.length > 0) throw statusErrors.invalid(kind, object.metadata.name ?? '', problems);
  for (const text of strategy.warnings?.(object) ?? []) context.warn(text);
  const validating = services.admission.validate(request);
  if (validating) await validating;
  return object;
}

/** Everything that only the server may say about a new object. */
function stamp(binding: ResourceBinding, context: RequestContext, object: AnyObject, sound: boolean): void {
  const { kind, services } = binding;
  const { strategy } = kind;
  const given = object.metadata ?? {};
  object.metadata = newMetadata(kind, given, {
    nowMs: services.clock.now(),
    ...(services.selfLinks ? { selfLink: objectPath(binding.storedKind, given) } : {}),
  });
  dropRepeatedOwners(object.metadata, context.warn);
  if (strategy.statusSubresource && !strategy.keepsStatusOnCreate) clearStatus(kind, object);
  if (sound) strategy.prepareForCreate?.(object, binding.strategyContext(context));
}
