import { always, type Infer, optional, type Schema, s } from '@keelson/core';

const labelSelectorRequirement = s.message(
  'k8s.io.apimachinery.pkg.apis.meta.v1.LabelSelectorRequirement',
  'One condition on the labels of an object.',
  {
    key: always(1, s.string(), 'Label key that the condition looks at.'),
    operator: always(2, s.string(), 'How key and values relate: In, NotIn, Exists or DoesNotExist.'),
    values: optional(
      3,
      s.list(s.string(), { listType: 'atomic' }),
      'Values to compare with; needed for In and NotIn, empty for Exists and DoesNotExist.',
    ),
  },
);
export interface LabelSelectorRequirement extends Infer<typeof labelSelectorRequirement> {}
export const LabelSelectorRequirementSchema: Schema<LabelSelectorRequirement> = labelSelectorRequirement;

const labelSelector = s.message(
  'k8s.io.apimachinery.pkg.apis.meta.v1.LabelSelector',
  'Picks objects by their labels. All conditions must hold; an empty selector picks everything.',
  {
    matchLabels: optional(1, s.map(s.string()), 'Labels that must be present with exactly these values.'),
    matchExpressions: optional(
      2,
      s.list(LabelSelectorRequirementSchema, { listType: 'atomic' }),
      'Conditions beyond plain equality.',
    ),
  },
  { mapType: 'atomic' },
);
export interface LabelSelector extends Infer<typeof labelSelector> {}
export const LabelSelectorSchema: Schema<LabelSelector> = labelSelector;
