import { always, type Infer, optional, type Schema, s } from './schema.ts';

const metaV1 = 'k8s.io.apimachinery.pkg.apis.meta.v1';

const requirement = s.message(`${metaV1}.LabelSelectorRequirement`, 'One condition on the labels of an object.', {
  key: always(1, s.string(), 'Label key that the condition looks at.'),
  operator: always(2, s.string(), 'How key and values relate: In, NotIn, Exists or DoesNotExist.'),
  values: optional(
    3,
    s.list(s.string(), { listType: 'atomic' }),
    'Values to compare with; needed for In and NotIn, empty for Exists and DoesNotExist.',
  ),
});
/** JSON form of one condition of a label selector. */
export interface LabelSelectorRequirementObject extends Infer<typeof requirement> {}
/** Schema of one element of `matchExpressions`. */
export const labelSelectorRequirementSchema: Schema<LabelSelectorRequirementObject> = requirement;

const selector = s.message(
  `${metaV1}.LabelSelector`,
  'Selects objects by their labels. All conditions must hold; an empty selector selects everything.',
  {
    matchLabels: optional(1, s.map(s.string()), 'Labels that must be present with exactly these values.'),
    matchExpressions: optional(
      2,
      s.list(labelSelectorRequirementSchema, { listType: 'atomic' }),
      'Conditions beyond plain equality.',
    ),
  },
  { mapType: 'atomic' },
);
/** JSON form of a label selector, as the specs of kinds hold it. */
export interface LabelSelectorObject extends Infer<typeof selector> {}
/** Schema of a label selector in a spec. */
export const labelSelectorSchema: Schema<LabelSelectorObject> = selector;
