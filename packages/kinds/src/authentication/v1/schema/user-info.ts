import { type Infer, optional, type Schema, s } from '@keelson/core';

const userInfo = s.message('k8s.io.api.authentication.v1.UserInfo', 'Information about a user.', {
  username: optional(1, s.string(), 'Name of the user.'),
  uid: optional(2, s.string(), 'Unique id of the user, which does not change when the user is renamed.'),
  groups: optional(3, s.list(s.string(), { listType: 'atomic' }), 'Groups of the user.'),
  extra: optional(4, s.map(s.list(s.string())), 'Additional information of the authenticator.'),
});
export interface UserInfo extends Infer<typeof userInfo> {}
export const UserInfoSchema: Schema<UserInfo> = userInfo;
