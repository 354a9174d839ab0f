import { type LabelSelector, type LabelSelectorSpec, labelSelectorOf } from '@keelson/core';

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
