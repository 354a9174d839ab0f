import { keyOf } from '@keelson/client';
import { controllerOf, type RelatedKind, relatedKind } from '@keelson/controller-kit';
import {
  type KindDefinition,
  type KubeObject,
  type LabelSelector,
  type LabelSelectorSpec,
  labelSelectorOf,
} from '@keelson/core';

/** Compiled selectors by spec. Specs from informers are shared and never change. */
const selectors = new WeakMap<object, LabelSelector>();

/** The selector of an object. */
export function selectorOf({ spec }: { readonly spec: { readonly selector: LabelSelectorSpec } }): LabelSelector {
  let selector = selectors.get(spec);
  if (selector === undefined) {
    selector = labelSelectorOf(spec.selector);
    selectors.set(spec, selector);
  }
  return selector;
}

/**
 * A change of an object without a controller triggers runs of all owners in its namespace that may adopt the object.
 */
export function relatedOrphans<T extends KubeObject>(
  kind: KindDefinition,
  owner: KindDefinition<T>,
  selector: (owner: T) => LabelSelector,
): RelatedKind {
  return relatedKind(kind, (object, _before, read) =>
    controllerOf(object) !== undefined
      ? []
      : read(owner)
          .inNamespace(object.metadata?.namespace ?? '')
          .filter((one) => selector(one).matches(object.metadata?.labels))
          .map(keyOf),
  );
}
