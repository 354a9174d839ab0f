import { type Infer, optional, type Schema, s } from '@keelson/core';

const userInfo = s.message('k8s.io.api.authentication.v1beta1.UserInfo', 'A user as the server knows it.', {
  username: optional(1, s.string(), 'Name of the user.'),
  uid: optional(2, s.string(), 'Identity of the user that survives renaming.'),
  groups: optional(3, s.list(s.string(), { listType: 'atomic' }), 'Groups of the user.'),
  extra: optional(4, s.map(s.list(s.string())), 'What else the authenticator knows about the user.'),
});
export interface UserInfo extends Infer<typeof userInfo> {}
export const UserInfoSchema: Schema<UserInfo> = userInfo;
