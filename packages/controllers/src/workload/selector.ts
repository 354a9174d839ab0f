import { keyOf } from '@keelson/client';
import { controllerOf, type RelatedKind, relatedKind } from '@keelson/controller-kit';
import {
  type KindDefinition,
  type KubeObject,
  type LabelSelector,
  type LabelSelectorSpec,
  labelSelectorOf,
} from '@keelson/core';

/** Specs of the informers are shared and never change, so each selector is compiled once. */
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

/** Objects of `kind` without a controller concern every owner of their namespace that may adopt them. */
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
