// Tests of Delivery.
