//! An [`Operation`] as Candle's custom operations of one, two and three inputs.

use std::marker::PhantomData;

use candle_core::{CpuStorage, CustomOp1, CustomOp2, CustomOp3, Layout, bail};

use super::view::all;
use super::{Backward, Operation, Result, Shape, Tensor, View, WithDType};

/// The result of an operation as a part of Candle's graph.
pub(crate) fn apply<O: Operation<N, T>, T: WithDType, const N: usize>(
    operation: O,
    inputs: [&Tensor; N],
) -> Result<Tensor> {
    let name = operation.name();
    let adapted = Adapted(operation, PhantomData);
    let inputs = inputs.iter().map(|input| input.contiguous()).collect::<Result<Vec<_>>>()?;
    match &inputs[..] {
        [first] => first.apply_op1(adapted),
        [first, second] => first.apply_op2(second, adapted),
        [first, second, third] => first.apply_op3(second, third, adapted),
        _ => bail!("{name} has {N} inputs, and Candle's operations have one to three"),
    }
}

struct Adapted<O, T, const N: usize>(O, PhantomData<fn() -> T>);

impl<O: Operation<N, T>, T: WithDType, const N: usize> Adapted<O, T, N> {
    fn forward(&self, inputs: &[(&CpuStorage, &Layout)]) -> Result<(CpuStorage, Shape)> {
        let views = inputs.iter().map(|(storage, layout)| View::new(self.0.name(), storage, layout));
        let (values, shape) = self.0.cpu(all(views.collect::<Result<_>>()?)?)?;
        Ok((T::to_cpu_storage_owned(values), shape))
    }

    fn backward<const M: usize>(
        &self,
        inputs: [&Tensor; M],
        result: &Tensor,
        gradient: &Tensor,
    ) -> Result<[Option<Tensor>; M]> {
        let is_needed = all(inputs.iter().map(|input| input.track_op()).collect())?;
        let backward = Backward {
            inputs: all(inputs.iter().map(|input| input.detach()).collect())?,
            is_needed,
            result: result.detach(),
            gradient: gradient.detach().contiguous()?,
        };
        let gradients = self.0.backward(backward)?.into_iter().zip(is_needed);
        all(gradients.map(|(gradient, is_needed)| gradient.filter(|_| is_needed)).collect())
    }
}

impl<O: Operation<N, T>, T: WithDType, const N: usize> CustomOp1 for Adapted<O, T, N> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        self.forward(&[(storage, layout)])
    }

    fn bwd(&self, input: &Tensor, result: &Tensor, gradient: &Tensor) -> Result<Option<Tensor>> {
        let [gradient] = self.backward([input], result, gradient)?;
        Ok(gradient)
    }
}

impl<O: Operation<N, T>, T: WithDType, const N: usize> CustomOp2 for Adapted<O, T, N> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn cpu_fwd(
        &self,
        s1: &CpuStorage,
        l1: &Layout,
        s2: &CpuStorage,
        l2: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.forward(&[(s1, l1), (s2, l2)])
    }

    fn bwd(
        &self,
        first: &Tensor,
        second: &Tensor,
        result: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>)> {
        Ok(self.backward([first, second], result, gradient)?.into())
    }
}

impl<O: Operation<N, T>, T: WithDType, const N: usize> CustomOp3 for Adapted<O, T, N> {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn cpu_fwd(
        &self,
        s1: &CpuStorage,
        l1: &Layout,
        s2: &CpuStorage,
        l2: &Layout,
        s3: &CpuStorage,
        l3: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.forward(&[(s1, l1), (s2, l2), (s3, l3)])
    }

    fn bwd(
        &self,
        first: &Tensor,
        second: &Tensor,
        third: &Tensor,
        result: &Tensor,
        gradient: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        Ok(self.backward([first, second, third], result, gradient)?.into())
    }
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device, Var};

    use super::*;

    /// `a + 2 b`.
    struct Sum;

    impl Operation<2> for Sum {
        fn name(&self) -> &'static str {
            "sum"
        }

        fn cpu(&self, [left, right]: [View<'_>; 2]) -> Result<(Vec<f32>, Shape)> {
            let sums = left.iter().zip(right.values).map(|(left, right)| left + 2. * right);
            Ok((sums.collect(), left.shape.clone()))
        }

        fn backward(&self, backward: Backward<2>) -> Result<[Option<Tensor>; 2]> {
            let Backward { inputs: [left, _], result, gradient, .. } = backward;
            assert!(!left.track_op() && !result.track_op() && !gradient.track_op());
            assert!(gradient.is_contiguous());
            let of_right = (&gradient * 2.)?;
            Ok([gradient, of_right].map(Some))
        }
    }

    #[test]
    fn inputs_of_any_layout_are_read_and_their_gradients_follow_it() {
        let left = Var::new(&[[1f32, 2., 3.], [4., 5., 6.]], &Device::Cpu).unwrap();
        let right = Tensor::new(&[[10f32, 20.], [30., 40.], [50., 60.]], &Device::Cpu).unwrap();
        let ys = apply(Sum, [&left.t().unwrap(), &right]).unwrap();
        assert_eq!(ys.to_vec2::<f32>().unwrap(), [[21., 44.], [62., 85.], [103., 126.]]);
        let weights = Tensor::new(&[[1f32, 2.], [3., 4.], [5., 6.]], &Device::Cpu).unwrap();
        let gradients = (ys * weights).unwrap().sum_all().unwrap().backward().unwrap();
        assert_eq!(gradients.get(&left).unwrap().to_vec2::<f32>().unwrap(), [[1., 3., 5.], [2., 4., 6.]]);
        assert!(gradients.get(&right).is_none(), "a constant needs no gradient");
    }

    #[test]
    fn another_type_is_refused_in_the_name_of_the_operation() {
        let xs = Tensor::zeros((1, 1), DType::F64, &Device::Cpu).unwrap();
        let message = apply(Sum, [&xs, &xs]).unwrap_err().to_string();
        assert!(message.contains("sum is computed in f32, got: f64"), "{message}");
    }
}
