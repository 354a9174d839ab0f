import { always, type Infer, optional, type Schema, s } from '@keelson/core';

const nodeSelectorRequirement = s.message('k8s.io.api.core.v1.NodeSelectorRequirement', 'One condition on a node.', {
  key: always(1, s.string(), 'Label key or field name.'),
  operator: always(
    2,
    s.string({ values: ['DoesNotExist', 'Exists', 'Gt', 'In', 'Lt', 'NotIn'] }),
    'In, NotIn, Exists, DoesNotExist, Gt or Lt.',
  ),
  values: optional(
    3,
    s.list(s.string(), { listType: 'atomic' }),
    'Values to compare with: none for Exists and DoesNotExist, one integer for Gt and Lt.',
  ),
});
export interface NodeSelectorRequirement extends Infer<typeof nodeSelectorRequirement> {}
export const NodeSelectorRequirementSchema: Schema<NodeSelectorRequirement> = nodeSelectorRequirement;

const nodeSelectorTerm = s.message(
  'k8s.io.api.core.v1.NodeSelectorTerm',
  'Conditions that must all hold; an empty term matches no node.',
  {
    matchExpressions: optional(
      1,
      s.list(NodeSelectorRequirementSchema, { listType: 'atomic' }),
      'Conditions on labels.',
    ),
    matchFields: optional(
      2,
      s.list(NodeSelectorRequirementSchema, { listType: 'atomic' }),
      'Conditions on fields, of which only metadata.name is known.',
    ),
  },
  { mapType: 'atomic' },
);
export interface NodeSelectorTerm extends Infer<typeof nodeSelectorTerm> {}
export const NodeSelectorTermSchema: Schema<NodeSelectorTerm> = nodeSelectorTerm;

const nodeSelector = s.message(
  'k8s.io.api.core.v1.NodeSelector',
  'Terms of which one must match.',
  {
    nodeSelectorTerms: always(
      1,
      s.list(NodeSelectorTermSchema, { listType: 'atomic' }),
      'The alternatives, at least one.',
    ),
  },
  { mapType: 'atomic' },
);
export interface NodeSelector extends Infer<typeof nodeSelector> {}
export const NodeSelectorSchema: Schema<NodeSelector> = nodeSelector;

const topologySelectorLabelRequirement = s.message(
  'k8s.io.api.core.v1.TopologySelectorLabelRequirement',
  'One condition on the label of a node.',
  {
    key: always(1, s.string(), 'Key of the label.'),
    values: always(2, s.list(s.string(), { listType: 'atomic' }), 'Values, of which one must be equal.'),
  },
);
export interface TopologySelectorLabelRequirement extends Infer<typeof topologySelectorLabelRequirement> {}
export const TopologySelectorLabelRequirementSchema: Schema<TopologySelectorLabelRequirement> =
  topologySelectorLabelRequirement;

const topologySelectorTerm = s.message(
  'k8s.io.api.core.v1.TopologySelectorTerm',
  'Conditions that must all hold.',
  {
    matchLabelExpressions: optional(
      1,
      s.list(TopologySelectorLabelRequirementSchema, { listType: 'atomic' }),
      'The conditions.',
    ),
  },
  { mapType: 'atomic' },
);
export interface TopologySelectorTerm extends Infer<typeof topologySelectorTerm> {}
export const TopologySelectorTermSchema: Schema<TopologySelectorTerm> = topologySelectorTerm;
